def twice(y):
    return y + y
