def eleven(x):
    return x * 11
