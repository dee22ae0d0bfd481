; ModuleID = 'kernels'
source_filename = "kernels"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define void @k792dc37ca8921604_p0(ptr noundef %0, ptr noundef %1, i64 %2, i64 %3, ptr noundef %4) #0 {
  %6 = icmp sgt i64 %2, 0
  %7 = select i1 %6, i64 %2, i64 0
  %8 = icmp slt i64 %7, 1
  %9 = select i1 %8, i64 %7, i64 1
  %10 = sub i64 %9, 0
  %11 = icmp sgt i64 %3, 0
  %12 = select i1 %11, i64 %3, i64 0
  %13 = icmp slt i64 %12, 1
  %14 = select i1 %13, i64 %12, i64 1
  %15 = sub i64 %14, 0
  %16 = icmp slt i64 %10, %15
  %17 = getelementptr ptr, ptr %0, i64 0
  %18 = load ptr, ptr %17, align 8
  br i1 %16, label %19, label %21

19:                                               ; preds = %28, %5
  %20 = phi i64 [ %10, %5 ], [ %29, %28 ]
  br label %22

21:                                               ; preds = %28, %5
  ret void

22:                                               ; preds = %22, %19
  %23 = phi i64 [ 0, %19 ], [ %26, %22 ]
  %24 = mul i64 %23, 4
  %25 = getelementptr i8, ptr %18, i64 %24
  store <16 x float> <float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000, float 0x3F40624DE0000000>, ptr %25, align 4
  %26 = add nuw nsw i64 %23, 16
  %27 = icmp slt i64 %26, 2000
  br i1 %27, label %22, label %28

28:                                               ; preds = %22
  %29 = add nuw nsw i64 %20, 1
  %30 = icmp slt i64 %29, %15
  br i1 %30, label %19, label %21
}

attributes #0 = { nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512" "target-cpu"="x86-64" "target-features"="+aes,+avx,+avx2,+avx512bf16,+avx512bitalg,+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vl,+avx512vnni,+avx512vpopcntdq,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+evex512,+f16c,+fma,+fxsr,+gfni,+lzcnt,+mmx,+movbe,+pclmul,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+vaes,+vpclmulqdq,+x87,+xsave" "tune-cpu"="icelake-server" }

!llvm.module.flags = !{!0}

!0 = !{i32 8, !"PIC Level", i32 1}
