	.text
	.file	"kernels"
	.section	.rodata.cst4,"aM",@progbits,4
	.p2align	2, 0x0
.LCPI0_0:
	.long	0x3f800000
	.text
	.globl	kb56efa7906635acd_p0
	.p2align	4, 0x90
	.type	kb56efa7906635acd_p0,@function
kb56efa7906635acd_p0:
	movq	%rdx, %rax
	sarq	$63, %rax
	andnq	%rdx, %rax, %rax
	cmpq	$3, %rax
	movl	$3, %edx
	cmovgeq	%rdx, %rax
	movq	%rcx, %rsi
	sarq	$63, %rsi
	andnq	%rcx, %rsi, %rcx
	cmpq	$3, %rcx
	cmovlq	%rcx, %rdx
	cmpq	%rdx, %rax
	jge	.LBB0_6
	movq	%rax, %rcx
	shlq	$14, %rcx
	addq	(%rdi), %rcx
	movl	$4096, %esi
	vbroadcastss	.LCPI0_0(%rip), %zmm0
	movb	$1, %dil
	jmp	.LBB0_2
	.p2align	4, 0x90
.LBB0_5:
	testb	%dil, %dil
	incq	%rax
	addq	$16384, %rcx
	cmpq	%rdx, %rax
	jge	.LBB0_6
.LBB0_2:
	movq	%rax, %r9
	shlq	$12, %r9
	movl	$10000, %r8d
	subq	%r9, %r8
	cmpq	$4096, %r8
	cmovgeq	%rsi, %r8
	testq	%r8, %r8
	jle	.LBB0_5
	xorl	%r9d, %r9d
	.p2align	4, 0x90
.LBB0_4:
	vmovups	%zmm0, (%rcx,%r9,4)
	addq	$16, %r9
	cmpq	%r8, %r9
	jl	.LBB0_4
	jmp	.LBB0_5
.LBB0_6:
	vzeroupper
	retq
.Lfunc_end0:
	.size	kb56efa7906635acd_p0, .Lfunc_end0-kb56efa7906635acd_p0

	.section	".note.GNU-stack","",@progbits
