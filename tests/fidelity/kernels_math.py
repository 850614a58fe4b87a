"""Probe operations: functions of the language and of the device library."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def exp(a):
    return tl.exp(a)


@triton.jit
def exp2(a):
    return tl.exp2(a)


@triton.jit
def log(a):
    return tl.log(a)


@triton.jit
def log2(a):
    return tl.log2(a)


@triton.jit
def sin(a):
    return tl.sin(a)


@triton.jit
def cos(a):
    return tl.cos(a)


@triton.jit
def sqrt(a):
    return tl.sqrt(a)


@triton.jit
def sqrt_rn(a):
    return tl.sqrt_rn(a)


@triton.jit
def rsqrt(a):
    return tl.rsqrt(a)


@triton.jit
def erf(a):
    return tl.erf(a)


@triton.jit
def floor(a):
    return tl.floor(a)


@triton.jit
def ceil(a):
    return tl.ceil(a)


@triton.jit
def sigmoid(a):
    return tl.sigmoid(a)


@triton.jit
def fdiv(a, b):
    return tl.fdiv(a, b)


@triton.jit
def div_rn(a, b):
    return tl.div_rn(a, b)


@triton.jit
def dev_tanh(a):
    return libdevice.tanh(a)


@triton.jit
def dev_exp(a):
    return libdevice.exp(a)


@triton.jit
def dev_expm1(a):
    return libdevice.expm1(a)


@triton.jit
def dev_log1p(a):
    return libdevice.log1p(a)


@triton.jit
def dev_log(a):
    return libdevice.log(a)


@triton.jit
def dev_rint(a):
    return libdevice.rint(a)


@triton.jit
def dev_round(a):
    return libdevice.round(a)


@triton.jit
def dev_trunc(a):
    return libdevice.trunc(a)


@triton.jit
def dev_pow(a, b):
    return libdevice.pow(a, b)


@triton.jit
def dev_fmod(a, b):
    return libdevice.fmod(a, b)


@triton.jit
def dev_atan2(a, b):
    return libdevice.atan2(a, b)


@triton.jit
def dev_isnan(a):
    return libdevice.isnan(a).to(tl.int8)


@triton.jit
def dev_isinf(a):
    return libdevice.isinf(a).to(tl.int8)


@triton.jit
def dev_erf(a):
    return libdevice.erf(a)


@triton.jit
def dev_rsqrt(a):
    return libdevice.rsqrt(a)


@triton.jit
def dev_fast_exp(a):
    return libdevice.fast_expf(a)


@triton.jit
def dev_asin(a):
    return libdevice.asin(a)


@triton.jit
def dev_cosh(a):
    return libdevice.cosh(a)
