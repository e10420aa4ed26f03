# SPDX-License-Identifier: MIT
"""The kernels, as text in PTX, which the driver compiles for the device that there is.

All work on unsigned 32-bit words, and on any number of threads: each thread takes every
N-th item, of N threads in all.
"""

# %index: the thread's number. %step: how many there are.
_PROLOGUE = """
	mov.u32 %r0, %ctaid.x;
	mov.u32 %r1, %ntid.x;
	mov.u32 %r2, %tid.x;
	mov.u32 %r3, %nctaid.x;
	cvt.u64.u32 %index, %r2;
	mad.wide.u32 %index, %r0, %r1, %index;
	mul.wide.u32 %step, %r3, %r1;
"""

_REGISTERS = """
	.reg .pred %p, %q;
	.reg .b32 %r<12>;
	.reg .b64 %d<12>, %index, %step, %start, %count, %sum;
"""

PTX = f"""
.version 7.0
.target sm_75
.address_size 64

// start[i] = value + i
.visible .entry fill(.param .u64 start, .param .u64 count, .param .u32 value)
{{{_REGISTERS}
	ld.param.u64 %start, [start];
	ld.param.u64 %count, [count];
	ld.param.u32 %r4, [value];
{_PROLOGUE}
FILL:
	setp.ge.u64 %p, %index, %count;
	@%p ret;
	shl.b64 %d0, %index, 2;
	add.u64 %d0, %start, %d0;
	cvt.u32.u64 %r5, %index;
	add.u32 %r5, %r5, %r4;
	st.u32 [%d0], %r5;
	add.u64 %index, %index, %step;
	bra FILL;
}}

// start[row * row_stride + column * column_stride] += value, with strides in bytes
.visible .entry add(.param .u64 start, .param .u64 rows, .param .u64 columns,
	.param .u64 row_stride, .param .u64 column_stride, .param .u32 value)
{{{_REGISTERS}
	ld.param.u64 %start, [start];
	ld.param.u64 %d0, [rows];
	ld.param.u64 %d1, [columns];
	ld.param.u64 %d2, [row_stride];
	ld.param.u64 %d3, [column_stride];
	ld.param.u32 %r4, [value];
	mul.lo.u64 %count, %d0, %d1;
{_PROLOGUE}
ADD:
	setp.ge.u64 %p, %index, %count;
	@%p ret;
	div.u64 %d4, %index, %d1;
	rem.u64 %d5, %index, %d1;
	mul.lo.u64 %d4, %d4, %d2;
	mad.lo.u64 %d4, %d5, %d3, %d4;
	add.u64 %d4, %start, %d4;
	ld.u32 %r5, [%d4];
	add.u32 %r5, %r5, %r4;
	st.u32 [%d4], %r5;
	add.u64 %index, %index, %step;
	bra ADD;
}}

// *total += the sum of count items of four words; 16 bytes a load
.visible .entry sum(.param .u64 start, .param .u64 count, .param .u64 total)
{{{_REGISTERS}
	ld.param.u64 %start, [start];
	ld.param.u64 %count, [count];
	ld.param.u64 %d1, [total];
	mov.u64 %sum, 0;
{_PROLOGUE}
SUM:
	setp.ge.u64 %p, %index, %count;
	@%p bra SUMMED;
	shl.b64 %d0, %index, 4;
	add.u64 %d0, %start, %d0;
	ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%d0];
	cvt.u64.u32 %d2, %r4;
	cvt.u64.u32 %d3, %r5;
	cvt.u64.u32 %d4, %r6;
	cvt.u64.u32 %d5, %r7;
	add.u64 %d2, %d2, %d3;
	add.u64 %d4, %d4, %d5;
	add.u64 %sum, %sum, %d2;
	add.u64 %sum, %sum, %d4;
	add.u64 %index, %index, %step;
	bra SUM;
SUMMED:
	red.global.add.u64 [%d1], %sum;
	ret;
}}

// Reads all words again and again until *stop isn't 0, or limit nanoseconds have passed.
// *rounds += how often it has done so; *limit_reached = 1 if that was the end.
.visible .entry watch(.param .u64 start, .param .u64 count, .param .u64 stop,
	.param .u64 limit, .param .u64 rounds, .param .u64 limit_reached)
{{{_REGISTERS}
	ld.param.u64 %start, [start];
	ld.param.u64 %count, [count];
	ld.param.u64 %d1, [stop];
	ld.param.u64 %d2, [limit];
	ld.param.u64 %d3, [rounds];
	ld.param.u64 %d8, [limit_reached];
	mov.u64 %d4, %globaltimer;
	add.u64 %d2, %d2, %d4;
{_PROLOGUE}
	mov.u64 %d5, %index;
WATCH:
	mov.u64 %index, %d5;
WORD:
	setp.ge.u64 %p, %index, %count;
	@%p bra ROUND;
	shl.b64 %d0, %index, 2;
	add.u64 %d0, %start, %d0;
	ld.volatile.u32 %r5, [%d0];
	add.u64 %index, %index, %step;
	bra WORD;
ROUND:
	setp.eq.u64 %q, %d5, 0;
	@%q ld.volatile.u64 %d6, [%d3];
	@%q add.u64 %d6, %d6, 1;
	@%q st.volatile.u64 [%d3], %d6;
	ld.volatile.u32 %r6, [%d1];
	setp.ne.u32 %p, %r6, 0;
	@%p ret;
	mov.u64 %d4, %globaltimer;
	setp.lt.u64 %p, %d4, %d2;
	@%p bra WATCH;
	mov.u32 %r7, 1;
	st.u32 [%d8], %r7;
	ret;
}}

// One thread: waits until *counter is above seen, or limit nanoseconds have passed. Then
// result[0] = *counter, and result[1] = *data as it is afterwards.
.visible .entry await(.param .u64 counter, .param .u64 seen, .param .u64 limit,
	.param .u64 data, .param .u64 result)
{{{_REGISTERS}
	ld.param.u64 %d0, [counter];
	ld.param.u64 %d1, [seen];
	ld.param.u64 %d2, [limit];
	ld.param.u64 %d3, [data];
	ld.param.u64 %d4, [result];
	mov.u64 %d5, %globaltimer;
	add.u64 %d2, %d2, %d5;
AWAIT:
	ld.acquire.sys.u64 %d6, [%d0];
	setp.gt.u64 %p, %d6, %d1;
	@%p bra AWAITED;
	mov.u64 %d5, %globaltimer;
	setp.lt.u64 %p, %d5, %d2;
	@%p bra AWAIT;
AWAITED:
	ld.volatile.u32 %r4, [%d3];
	cvt.u64.u32 %d7, %r4;
	st.volatile.u64 [%d4+8], %d7;
	st.volatile.u64 [%d4], %d6;
	ret;
}}

// One thread: *data = value, then *counter += 1, in this order for the whole system.
.visible .entry publish(.param .u64 counter, .param .u64 data, .param .u32 value)
{{{_REGISTERS}
	ld.param.u64 %d0, [counter];
	ld.param.u64 %d1, [data];
	ld.param.u32 %r4, [value];
	st.u32 [%d1], %r4;
	ld.acquire.sys.u64 %d2, [%d0];
	add.u64 %d2, %d2, 1;
	fence.acq_rel.sys;
	st.release.sys.u64 [%d0], %d2;
	ret;
}}
"""
