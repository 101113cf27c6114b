# Functions that begin with a landing pad, each of which counts its calls in
# many_calls, in the order of many_all. What is behind the pads differs.

.macro COUNT n
	incq	many_calls+8*\n(%rip)
.endm
.macro FUNCTION name
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
.endm
.macro END name
	.size	\name, .-\name
	.zero	160, 0x90	# out of reach of short branches
.endm

.text
	.zero	160, 0x90
FUNCTION pad_push
	endbr64
	push	%rbp
	COUNT	0
	pop	%rbp
	ret
END pad_push

FUNCTION pad_nops		# a long nop, which the kernel does not emulate, is as good as a pad
	endbr64
	nopw	0(%rax,%rax)
	.byte	0x66, 0x0f, 0x1f, 0x44, 0, 0
	push	%rbp
	COUNT	1
	pop	%rbp
	ret
END pad_nops

FUNCTION pad_jump
	endbr64
	jmp	1f
	.zero	200, 0x90
1:	COUNT	2
	ret
END pad_jump

FUNCTION pad_call
	endbr64
	call	1f
	ret
1:	COUNT	3
	ret
END pad_call

FUNCTION pad_ret
	endbr64
	ret
END pad_ret

FUNCTION pad_sub
	endbr64
	sub	$8, %rsp
	COUNT	5
	add	$8, %rsp
	ret
END pad_sub

FUNCTION pad_loop		# a short branch leads behind the pad
	endbr64
1:	push	%rcx
	mov	$0x66, %eax
	pop	%rcx
	incl	turns(%rip)
	testl	$3, turns(%rip)
	jnz	1b
	COUNT	6
	ret
END pad_loop

FUNCTION pad_far		# a long one, from another function, does
	endbr64
far:	push	%rcx
	pop	%rcx
	incl	turns(%rip)
	testl	$3, turns(%rip)
	jnz	again
	COUNT	7
	ret
END pad_far

FUNCTION again
	jmp	far
END again

FUNCTION pad_table		# an indirect one does, by a table
	endbr64
entry:	push	%rcx
	pop	%rcx
	incl	turns(%rip)
	testl	$3, turns(%rip)
	jz	1f
	jmp	*table(%rip)
1:	COUNT	8
	ret
END pad_table

FUNCTION back			# a short one from before the function does
	jmp	tight
	ret
	.size	back, .-back
	.globl	pad_back
	.type	pad_back, @function
pad_back:
	endbr64
tight:	push	%rcx
	pop	%rcx
	incl	turns(%rip)
	testl	$3, turns(%rip)
	jnz	back
	COUNT	9
	ret
END pad_back

.data
.globl	many_calls, many_all
.type	many_calls, @object
many_calls:
	.zero	8*10
many_all:
	.quad	pad_push, pad_nops, pad_jump, pad_call, pad_ret, pad_sub, pad_loop, pad_far, pad_table, pad_back
table:	.quad	entry
turns:	.long	0
.section .note.GNU-stack,"",@progbits
