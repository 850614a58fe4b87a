import builtins

builtins.SET_UP = 13
