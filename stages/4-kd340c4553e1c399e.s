	.text
	.file	"kernels"
	.section	.rodata.cst4,"aM",@progbits,4
	.p2align	2, 0x0
.LCPI0_0:
	.long	1999
	.text
	.globl	kd340c4553e1c399e_p0
	.p2align	4, 0x90
	.type	kd340c4553e1c399e_p0,@function
kd340c4553e1c399e_p0:
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
	movq	(%rdi), %rcx
	movq	%rax, %rsi
	shlq	$14, %rsi
	movq	64(%rdi), %r8
	addq	%rsi, %r8
	addq	16(%rdi), %rsi
	movq	8(%rdi), %rdi
	movl	$4096, %r9d
	vpxor	%xmm0, %xmm0, %xmm0
	vpbroadcastd	.LCPI0_0(%rip), %zmm1
	movb	$1, %r10b
	jmp	.LBB0_2
	.p2align	4, 0x90
.LBB0_5:
	testb	%r10b, %r10b
	incq	%rax
	addq	$16384, %r8
	addq	$16384, %rsi
	cmpq	%rdx, %rax
	jge	.LBB0_6
.LBB0_2:
	movq	%rax, %rbx
	shlq	$12, %rbx
	movl	$10000, %r11d
	subq	%rbx, %r11
	cmpq	$4096, %r11
	cmovgeq	%r9, %r11
	testq	%r11, %r11
	jle	.LBB0_5
	xorl	%ebx, %ebx
	.p2align	4, 0x90
.LBB0_4:
	vpmaxsd	(%rsi,%rbx,4), %zmm0, %zmm2
	vpminsd	%zmm1, %zmm2, %zmm2
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm3, %xmm3, %xmm3
	vgatherdps	(%rcx,%zmm2,4), %zmm3 {%k1}
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	(%rdi,%zmm2,4), %zmm4 {%k1}
	vdivps	%zmm4, %zmm3, %zmm2
	vmovups	%zmm2, (%r8,%rbx,4)
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
	.size	kd340c4553e1c399e_p0, .Lfunc_end0-kd340c4553e1c399e_p0

	.globl	kd340c4553e1c399e_p1
	.p2align	4, 0x90
	.type	kd340c4553e1c399e_p1,@function
kd340c4553e1c399e_p1:
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
	movq	72(%rdi), %rcx
	movq	24(%rdi), %rsi
	movq	64(%rdi), %rdi
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
	movslq	(%rsi,%r10,4), %r11
	movq	%r11, %rbx
	subq	%r9, %rbx
	setns	%bpl
	cmpq	$250, %rbx
	setl	%bl
	testb	%bl, %bpl
	je	.LBB1_7
	vmovss	(%rcx,%r11,4), %xmm1
	vaddss	(%rdi,%r10,4), %xmm1, %xmm1
	vmovss	%xmm1, (%rcx,%r11,4)
	jmp	.LBB1_7
.LBB1_9:
	popq	%rbx
	popq	%rbp
.LBB1_10:
	vzeroupper
	retq
.Lfunc_end1:
	.size	kd340c4553e1c399e_p1, .Lfunc_end1-kd340c4553e1c399e_p1

	.section	.rodata.cst4,"aM",@progbits,4
	.p2align	2, 0x0
.LCPI2_0:
	.long	0x3f59999a
.LCPI2_1:
	.long	0x389d4952
.LCPI2_2:
	.long	0x7fffffff
.LCPI2_3:
	.long	0x33d6bf95
	.text
	.globl	kd340c4553e1c399e_p2
	.p2align	4, 0x90
	.type	kd340c4553e1c399e_p2,@function
kd340c4553e1c399e_p2:
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
	jge	.LBB2_6
	pushq	%rbx
	movq	72(%rdi), %rdx
	movq	40(%rdi), %rsi
	movq	(%rdi), %r8
	movq	32(%rdi), %r9
	movq	48(%rdi), %r10
	movq	56(%rdi), %rdi
	vbroadcastss	.LCPI2_0(%rip), %zmm0
	vbroadcastss	.LCPI2_1(%rip), %zmm1
	vbroadcastss	.LCPI2_2(%rip), %zmm2
	vmovss	.LCPI2_3(%rip), %xmm3
	.p2align	4, 0x90
.LBB2_2:
	vxorps	%xmm4, %xmm4, %xmm4
	movl	$192, %r11d
	vxorps	%xmm5, %xmm5, %xmm5
	vxorps	%xmm6, %xmm6, %xmm6
	vxorps	%xmm7, %xmm7, %xmm7
	xorl	%ebx, %ebx
	.p2align	4, 0x90
.LBB2_3:
	vmulps	-192(%rdx,%r11), %zmm0, %zmm8
	vaddps	%zmm1, %zmm8, %zmm8
	vmovups	%zmm8, -192(%rsi,%r11)
	vsubps	-192(%r8,%r11), %zmm8, %zmm8
	vmulps	-128(%rdx,%r11), %zmm0, %zmm9
	vandps	%zmm2, %zmm8, %zmm8
	vaddps	%zmm1, %zmm9, %zmm9
	vmovups	%zmm9, -128(%rsi,%r11)
	vsubps	-128(%r8,%r11), %zmm9, %zmm9
	vaddps	%zmm8, %zmm7, %zmm7
	vandps	%zmm2, %zmm9, %zmm8
	vaddps	%zmm8, %zmm6, %zmm6
	vmulps	-64(%rdx,%r11), %zmm0, %zmm8
	vaddps	%zmm1, %zmm8, %zmm8
	vmovups	%zmm8, -64(%rsi,%r11)
	vsubps	-64(%r8,%r11), %zmm8, %zmm8
	vmulps	(%rdx,%r11), %zmm0, %zmm9
	vandps	%zmm2, %zmm8, %zmm8
	vaddps	%zmm1, %zmm9, %zmm9
	vmovups	%zmm9, (%rsi,%r11)
	vsubps	(%r8,%r11), %zmm9, %zmm9
	vaddps	%zmm8, %zmm5, %zmm5
	vandps	%zmm2, %zmm9, %zmm8
	vaddps	%zmm8, %zmm4, %zmm4
	incq	%rbx
	addq	$256, %r11
	cmpq	$31, %rbx
	jl	.LBB2_3
	vmulps	7936(%rdx), %zmm0, %zmm8
	vaddps	%zmm1, %zmm8, %zmm8
	vmovups	%zmm8, 7936(%rsi)
	vsubps	7936(%r8), %zmm8, %zmm8
	vandps	%zmm2, %zmm8, %zmm8
	vaddps	%zmm8, %zmm7, %zmm7
	vaddps	%zmm5, %zmm7, %zmm5
	vaddps	%zmm4, %zmm6, %zmm4
	vaddps	%zmm4, %zmm5, %zmm4
	vshuff64x2	$78, %zmm4, %zmm4, %zmm5
	vaddps	%zmm5, %zmm4, %zmm4
	vextractf128	$1, %ymm4, %xmm5
	vaddps	%xmm5, %xmm4, %xmm4
	vshufpd	$1, %xmm4, %xmm4, %xmm5
	vaddps	%xmm5, %xmm4, %xmm4
	vmovshdup	%xmm4, %xmm5
	vaddss	%xmm5, %xmm4, %xmm4
	movl	(%r9), %r11d
	incl	%r11d
	movl	%r11d, (%r10)
	vucomiss	%xmm3, %xmm4
	seta	%bl
	cmpl	$30, %r11d
	setl	%r11b
	andb	%bl, %r11b
	movb	%r11b, (%rdi)
	incq	%rax
	cmpq	%rcx, %rax
	jl	.LBB2_2
	popq	%rbx
.LBB2_6:
	vzeroupper
	retq
.Lfunc_end2:
	.size	kd340c4553e1c399e_p2, .Lfunc_end2-kd340c4553e1c399e_p2

	.section	".note.GNU-stack","",@progbits
