"""Kernels with one planted fault each, on the line that carries its mark; and correct twins."""

import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(y + i, tl.load(x + i, mask=m), mask=m)


@triton.jit
def read_past(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)  # mark: read_past
    tl.store(y + i, v, mask=i < n)


@triton.jit
def write_past(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + i, v)  # mark: write_past


@triton.jit
def write_far(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    far = i.to(tl.int64) + 8589934592
    tl.store(y + far, tl.load(x + i, mask=i < n, other=0.0))  # mark: write_far


@triton.jit
def read_before(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i - 1))  # mark: read_before


@triton.jit
def reach_other(x, y, gap, BLOCK: tl.constexpr):
    """Reads the other tensor through the first one's pointer."""
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + gap + i))  # mark: reach_other


@triton.jit
def rows_dense(x, y, M, N, BLOCK: tl.constexpr):
    """Takes a padded matrix for a dense one."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < N
    tl.store(y + row * N + i, tl.load(x + row * N + i, mask=m), mask=m)  # mark: rows_dense


@triton.jit
def rows_strided(x, y, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < N
    tl.store(y + row * N + i, tl.load(x + row * stride + i, mask=m), mask=m)


@triton.jit
def add_to_unset(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    m = i < n
    old = tl.load(y + i, mask=m)  # mark: add_to_unset
    tl.store(y + i, old + tl.load(x + i, mask=m), mask=m)


@triton.jit
def wrap_row(x, y, row, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    start = row * stride  # mark: wrap_row
    tl.store(y + i, tl.load(x + start + i))


@triton.jit
def wide_row(x, y, row, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    start = row.to(tl.int64) * stride - row.to(tl.int64) * stride
    tl.store(y + i, tl.load(x + start + i))


@triton.jit
def wrap_and_return(x, y, big, BLOCK: tl.constexpr):
    """The sum leaves the range and comes back: the offset is right."""
    i = tl.arange(0, BLOCK)
    at = (i + big) + big
    at = (at - big) - big
    tl.store(y + i, tl.load(x + at))


@triton.jit
def hashed(x, y, n, BLOCK: tl.constexpr):
    """A hash wraps on purpose and is reduced before it is an index."""
    i = tl.arange(0, BLOCK)
    h = i * 1103515245 + 12345
    h = (h ^ (h >> 16)) * 73244475
    at = (h & 0x7FFFFFFF) % n
    keep = tl.rand(7, i) >= 0.0
    tl.store(y + i, tl.load(x + at), mask=keep)


@triton.jit
def wrap_masked(x, y, big, n, BLOCK: tl.constexpr):
    """Only lanes that are masked off wrap."""
    i = tl.arange(0, BLOCK)
    at = tl.where(i < n, i, i * big)
    tl.store(y + i, tl.load(x + at, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def race_write(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i) + tl.program_id(0)
    tl.store(y + i, v)  # mark: race_write


@triton.jit
def same_write(x, y, BLOCK: tl.constexpr):
    """Every program writes the same values."""
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i))


@triton.jit
def race_read(x, y, BLOCK: tl.constexpr):
    """Each program overwrites what the next one reads."""
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + (pid + 1) * BLOCK + i)
    tl.store(x + pid * BLOCK + i, v + 1)  # mark: race_read


@triton.jit
def race_sum(x, y, BLOCK: tl.constexpr):
    """Adds without an atomic."""
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + i))
    tl.store(y, tl.load(y) + total)  # mark: race_sum


@triton.jit
def atomic_sum(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(y, tl.sum(tl.load(x + tl.program_id(0) * BLOCK + i)))


@triton.jit
def locked_sum(x, y, lock, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + i))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(y, tl.load(y) + total)
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_sum(x, part, count, y, P: tl.constexpr, BLOCK: tl.constexpr):
    """The last program to finish adds up what all of them wrote."""
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(part + pid, tl.sum(tl.load(x + pid * BLOCK + i)))
    done = tl.atomic_add(count, 1)
    if done == P - 1:
        tl.store(y, tl.sum(tl.load(part + tl.arange(0, P))))


@triton.jit
def wait_for_other(x, y, flag, BLOCK: tl.constexpr):
    """The first program waits for the last one."""
    pid = tl.program_id(0)
    if pid == 0:
        while tl.atomic_add(flag, 0) == 0:
            pass
    else:
        tl.atomic_add(flag, 1)
    i = tl.arange(0, BLOCK)
    tl.store(y + pid * BLOCK + i, tl.load(x + i))


@triton.jit
def order_dependent(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(y + i) * 2 + tl.program_id(0))


@triton.jit
def pointers(table, y, n, BLOCK: tl.constexpr):
    """Reads addresses from memory."""
    i = tl.arange(0, BLOCK)
    at = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(y + tl.program_id(0) * BLOCK + i, tl.load(at + i, mask=i < n, other=0.0))


@triton.jit
def assembly(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x + i)], tl.int32, True, 1)
    tl.store(y + i, v)


@triton.jit
def to_on_int(x, y, n, BLOCK: tl.constexpr):
    """Does not compile for n == 1, which is a constant then."""
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) * n.to(tl.float32))  # mark: to_on_int


@triton.jit
def shallow_dot(x, y, BLOCK: tl.constexpr):
    """Does not compile: the inner extent is too small for a tensor core."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i[:, None] * 4 + tl.arange(0, 4)[None, :])
    tl.store(y + i[:, None] * BLOCK + i[None, :], tl.dot(a, tl.trans(a)))  # mark: shallow_dot


@triton.jit
def unknown_name(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) * undefined_factor)  # noqa: F821  # mark: unknown_name


@triton.jit
def ragged_block(x, y, BLOCK: tl.constexpr):
    """Does not compile: a loop changes the type of what it carries."""
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float16)
    for _ in range(0, 2):
        acc = acc + tl.load(x + i)  # mark: ragged_block
    tl.store(y + i, acc)


@triton.jit
def flag_passed(x, y, part, flag, BLOCK: tl.constexpr):
    """The second program waits for the first one's data by reading a flag again and again."""
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    if pid == 0:
        tl.store(part + i, tl.load(x + i) * 2)
        tl.atomic_xchg(flag, 1)
    else:
        while tl.load(flag, volatile=True) == 0:
            pass
        tl.store(y + i, tl.load(part + i))


@triton.jit
def misaligned(x, y, BLOCK: tl.constexpr):
    """Reads four bytes at an odd address."""
    at = (x + 1).to(tl.pointer_type(tl.int32))
    tl.store(y + tl.arange(0, BLOCK), tl.load(at + tl.arange(0, BLOCK)))  # mark: misaligned


@triton.jit
def far_rows(x, y, stride, N: tl.constexpr, BLOCK: tl.constexpr):
    """Wraps for the third row of a tensor whose rows are 2**30 elements apart."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    at = x + row * stride + i  # mark: far_rows
    tl.store(y + row * N + i, tl.load(at, mask=i < N, other=0.0), mask=i < N)


@triton.jit
def far_rows_wide(x, y, stride, N: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, mask=i < N, other=0.0)
    tl.store(x + row * stride + i, v, mask=i < N)
    tl.store(y + row * N + i, v, mask=i < N)


@triton.jit
def volatile_cached(x, y, BLOCK: tl.constexpr):  # mark: volatile_cached
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, cache_modifier=".cg", volatile=True))


@triton.jit
def index_past(index, x, y, n, BLOCK: tl.constexpr):
    """The last program's index lies past the end; what it reads there is an offset of y and x."""
    row = tl.load(index + tl.program_id(0))  # mark: index_past
    i = tl.arange(0, BLOCK)
    tl.store(y + row * n + i, tl.load(x + row * n + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def count_past_and_write_past(counts, y, n, BLOCK: tl.constexpr):
    """Reads a count past the end, and stores past the end where the count has no part in it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    count = tl.load(counts + i)
    tl.store(y + i, count)
