	.text
	.file	"kernels"
	.section	.rodata.cst4,"aM",@progbits,4
	.p2align	2, 0x0
.LCPI0_0:
	.long	0x3a03126f
	.text
	.globl	k792dc37ca8921604_p0
	.p2align	4, 0x90
	.type	k792dc37ca8921604_p0,@function
k792dc37ca8921604_p0:
	movq	%rdx, %rax
	sarq	$63, %rax
	andnq	%rdx, %rax, %rax
	movl	$1, %edx
	cmovgq	%rdx, %rax
	movq	%rcx, %rsi
	sarq	$63, %rsi
	andnq	%rcx, %rsi, %rcx
	cmovgq	%rdx, %rcx
	cmpq	%rcx, %rax
	jge	.LBB0_5
	movq	(%rdi), %rdx
	vbroadcastss	.LCPI0_0(%rip), %zmm0
	.p2align	4, 0x90
.LBB0_2:
	xorl	%esi, %esi
	.p2align	4, 0x90
.LBB0_3:
	vmovups	%zmm0, (%rdx,%rsi,4)
	addq	$16, %rsi
	cmpq	$2000, %rsi
	jl	.LBB0_3
	incq	%rax
	cmpq	%rcx, %rax
	jl	.LBB0_2
.LBB0_5:
	vzeroupper
	retq
.Lfunc_end0:
	.size	k792dc37ca8921604_p0, .Lfunc_end0-k792dc37ca8921604_p0

	.section	".note.GNU-stack","",@progbits
