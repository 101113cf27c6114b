# For each condition cc a function branch_cc that compares its arguments, and returns whether a jump on the condition is
# taken. The jump is 6 bytes behind the beginning.
	.text
	.macro branch cc
	.balign 64, 0xcc
	.globl branch_\cc
	.type branch_\cc, @function
branch_\cc:
	.cfi_startproc
	mov %rdi, %rax
	cmp %rsi, %rax
	j\cc 1f
	mov $0, %eax
	ret
1:	mov $1, %eax
	ret
	.cfi_endproc
	.size branch_\cc, .-branch_\cc
	.endm

	.irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	branch \cc
	.endr

	.data
	.globl branches
branches:
	.irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	.quad branch_\cc
	.endr
	.quad 0
	.section .note.GNU-stack, "", @progbits
