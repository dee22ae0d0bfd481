	.text
	.file	"kernels"
	.section	.rodata.cst4,"aM",@progbits,4
	.p2align	2, 0x0
.LCPI0_0:
	.long	2000
	.text
	.globl	k6fccb4d39a63e42e_p0
	.p2align	4, 0x90
	.type	k6fccb4d39a63e42e_p0,@function
k6fccb4d39a63e42e_p0:
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
	jge	.LBB0_7
	pushq	%rbx
	movq	%rax, %rcx
	shlq	$14, %rcx
	movq	32(%rdi), %rsi
	addq	%rcx, %rsi
	movq	8(%rdi), %r8
	addq	%rcx, %r8
	movq	24(%rdi), %r9
	addq	%rcx, %r9
	addq	(%rdi), %rcx
	movl	$4096, %edi
	vpbroadcastd	.LCPI0_0(%rip), %zmm0
	movb	$1, %r10b
	jmp	.LBB0_2
	.p2align	4, 0x90
.LBB0_5:
	testb	%r10b, %r10b
	incq	%rax
	addq	$16384, %rsi
	addq	$16384, %r8
	addq	$16384, %r9
	addq	$16384, %rcx
	cmpq	%rdx, %rax
	jge	.LBB0_6
.LBB0_2:
	movq	%rax, %rbx
	shlq	$12, %rbx
	movl	$10000, %r11d
	subq	%rbx, %r11
	cmpq	$4096, %r11
	cmovgeq	%rdi, %r11
	testq	%r11, %r11
	jle	.LBB0_5
	xorl	%ebx, %ebx
	.p2align	4, 0x90
.LBB0_4:
	vmovdqu64	(%rcx,%rbx,4), %zmm1
	vpmovd2m	%zmm1, %k1
	vpaddd	%zmm0, %zmm1, %zmm1 {%k1}
	vmovdqu64	%zmm1, (%r9,%rbx,4)
	vmovdqu64	(%r8,%rbx,4), %zmm1
	vpmovd2m	%zmm1, %k1
	vpaddd	%zmm0, %zmm1, %zmm1 {%k1}
	vmovdqu64	%zmm1, (%rsi,%rbx,4)
	addq	$16, %rbx
	cmpq	%r11, %rbx
	jl	.LBB0_4
	jmp	.LBB0_5
.LBB0_6:
	popq	%rbx
.LBB0_7:
	vzeroupper
	retq
.Lfunc_end0:
	.size	k6fccb4d39a63e42e_p0, .Lfunc_end0-k6fccb4d39a63e42e_p0

	.globl	k6fccb4d39a63e42e_p1
	.p2align	4, 0x90
	.type	k6fccb4d39a63e42e_p1,@function
k6fccb4d39a63e42e_p1:
	movq	%rdx, %rax
	sarq	$63, %rax
	andnq	%rdx, %rax, %rax
	cmpq	$8, %rax
	movl	$8, %edx
	cmovgeq	%rdx, %rax
	movq	%rcx, %rsi
	sarq	$63, %rsi
	andnq	%rcx, %rsi, %rcx
	cmpq	$8, %rcx
	cmovlq	%rcx, %rdx
	cmpq	%rdx, %rax
	jge	.LBB1_10
	pushq	%rbp
	pushq	%rbx
	movq	48(%rdi), %rcx
	movq	16(%rdi), %rsi
	movq	24(%rdi), %rdi
	imulq	$1000, %rax, %r8
	addq	%rcx, %r8
	vxorps	%xmm0, %xmm0, %xmm0
	movw	$1023, %r9w
	kmovd	%r9d, %k1
	jmp	.LBB1_2
	.p2align	4, 0x90
.LBB1_8:
	incq	%rax
	addq	$1000, %r8
	cmpq	%rdx, %rax
	jge	.LBB1_9
.LBB1_2:
	imulq	$250, %rax, %r9
	imulq	$1000, %rax, %r10
	addq	%rcx, %r10
	xorl	%r11d, %r11d
	.p2align	4, 0x90
.LBB1_3:
	vmovups	%zmm0, (%r8,%r11,4)
	addq	$16, %r11
	cmpq	$240, %r11
	jl	.LBB1_3
	vmovups	%zmm0, 960(%r10) {%k1}
	xorl	%r10d, %r10d
	jmp	.LBB1_5
	.p2align	4, 0x90
.LBB1_7:
	incq	%r10
	cmpq	$10000, %r10
	jge	.LBB1_8
.LBB1_5:
	movslq	(%rdi,%r10,4), %r11
	movq	%r11, %rbx
	subq	%r9, %rbx
	setns	%bpl
	cmpq	$250, %rbx
	setl	%bl
	testb	%bl, %bpl
	je	.LBB1_7
	vmovss	(%rcx,%r11,4), %xmm1
	vaddss	(%rsi,%r10,4), %xmm1, %xmm1
	vmovss	%xmm1, (%rcx,%r11,4)
	jmp	.LBB1_7
.LBB1_9:
	popq	%rbx
	popq	%rbp
.LBB1_10:
	vzeroupper
	retq
.Lfunc_end1:
	.size	k6fccb4d39a63e42e_p1, .Lfunc_end1-k6fccb4d39a63e42e_p1

	.section	.rodata.cst4,"aM",@progbits,4
	.p2align	2, 0x0
.LCPI2_0:
	.long	0x3f800000
	.text
	.globl	k6fccb4d39a63e42e_p2
	.p2align	4, 0x90
	.type	k6fccb4d39a63e42e_p2,@function
k6fccb4d39a63e42e_p2:
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
	jge	.LBB2_5
	movq	40(%rdi), %rdx
	movq	48(%rdi), %rsi
	vbroadcastss	.LCPI2_0(%rip), %zmm0
	.p2align	4, 0x90
.LBB2_2:
	xorl	%edi, %edi
	.p2align	4, 0x90
.LBB2_3:
	vmaxps	(%rsi,%rdi,4), %zmm0, %zmm1
	vmovups	%zmm1, (%rdx,%rdi,4)
	addq	$16, %rdi
	cmpq	$2000, %rdi
	jl	.LBB2_3
	incq	%rax
	cmpq	%rcx, %rax
	jl	.LBB2_2
.LBB2_5:
	vzeroupper
	retq
.Lfunc_end2:
	.size	k6fccb4d39a63e42e_p2, .Lfunc_end2-k6fccb4d39a63e42e_p2

	.section	".note.GNU-stack","",@progbits
