# Functions whose first instructions differ. Each returns 3n+1. Of those with _only no jump
# can stand at the second instruction.
	.text
	.macro function name
	.balign 64, 0xcc
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	.endm
	.macro end name
	.cfi_endproc
	.size \name, .-\name
	.endm

	function push1
	push %rbx
	mov %rdi, %rbx
	lea 1(%rbx,%rbx,2), %rax
	pop %rbx
	ret
	end push1

	function push2
	push %r12
	mov %rdi, %r12
	lea 1(%r12,%r12,2), %rax
	pop %r12
	ret
	end push2

	function mov3
	mov %rdi, %rax
	lea 1(%rax,%rax,2), %rax
	nop
	ret
	end mov3

	function sub4
	sub $24, %rsp
	mov %rdi, 8(%rsp)
	mov 8(%rsp), %rax
	lea 1(%rax,%rax,2), %rax
	add $24, %rsp
	ret
	end sub4

	function red5
	mov %rdi, -8(%rsp)
	mov -8(%rsp), %rax
	lea 1(%rax,%rax,2), %rax
	ret
	end red5

	function flags3
	test %rdi, %rdi
	mov %rdi, %rax
	jns 1f
	mov $0, %eax
1:	lea 1(%rax,%rax,2), %rax
	ret
	end flags3

	function const5
	mov $1, %eax
	lea (%rax,%rdi), %rax
	lea (%rax,%rdi,2), %rax
	ret
	end const5

	function nop5
	.byte 0x0f, 0x1f, 0x44, 0, 0
	mov %rdi, -8(%rsp)
	lea 1(%rdi,%rdi), %rax
	add -8(%rsp), %rax
	ret
	end nop5

	function sub6
	.byte 0x48, 0x81, 0xec, 0x18, 0, 0, 0
	mov %rdi, %rax
	lea 1(%rax,%rax,2), %rax
	add $24, %rsp
	ret
	end sub6

	function pad
	endbr64
	push %rbx
	mov %rdi, %rbx
	lea 1(%rbx,%rbx,2), %rax
	pop %rbx
	ret
	end pad

	function stack_only
	lea -24(%rsp), %rsp
	lea 1(%rdi,%rdi,2), %rax
	lea 24(%rsp), %rsp
	ret
	end stack_only

	function inner5
	mov %rdi, -8(%rsp)
	.byte 0x0f, 0x1f, 0x44, 0, 0
	mov -8(%rsp), %rax
	lea 1(%rax,%rax,2), %rax
	ret
	end inner5

	function const_only
	lea 1(%rdi,%rdi,2), %rax
	ret
	end const_only
	.byte 0x0e

	.data
	.balign 8
	.globl functions
functions:
	.irp name, push1, push2, mov3, sub4, red5, flags3, const5, nop5, sub6, pad, inner5, stack_only, const_only
	.quad \name, name_\name
	.endr
	.quad 0, 0
	.irp name, push1, push2, mov3, sub4, red5, flags3, const5, nop5, sub6, pad, inner5, stack_only, const_only
name_\name: .asciz "\name"
	.endr
	.section .note.GNU-stack, "", @progbits
