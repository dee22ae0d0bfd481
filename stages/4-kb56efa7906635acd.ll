; ModuleID = 'kernels'
source_filename = "kernels"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define void @kb56efa7906635acd_p0(ptr noundef %0, ptr noundef %1, i64 %2, i64 %3, ptr noundef %4) #0 {
  %6 = icmp sgt i64 %2, 0
  %7 = select i1 %6, i64 %2, i64 0
  %8 = icmp slt i64 %7, 3
  %9 = select i1 %8, i64 %7, i64 3
  %10 = sub i64 %9, 0
  %11 = icmp sgt i64 %3, 0
  %12 = select i1 %11, i64 %3, i64 0
  %13 = icmp slt i64 %12, 3
  %14 = select i1 %13, i64 %12, i64 3
  %15 = sub i64 %14, 0
  %16 = icmp slt i64 %10, %15
  %17 = getelementptr ptr, ptr %0, i64 0
  %18 = load ptr, ptr %17, align 8
  br i1 %16, label %19, label %30

19:                                               ; preds = %46, %5
  %20 = phi i64 [ %10, %5 ], [ %47, %46 ]
  %21 = mul i64 %20, 4096
  %22 = sub i64 10000, %21
  %23 = icmp slt i64 %22, 4096
  %24 = select i1 %23, i64 %22, i64 4096
  %25 = srem i64 %24, 16
  %26 = sub i64 %24, %25
  %27 = icmp slt i64 0, %26
  %28 = mul i64 %20, 16384
  %29 = getelementptr i8, ptr %18, i64 %28
  br i1 %27, label %31, label %37

30:                                               ; preds = %46, %5
  ret void

31:                                               ; preds = %31, %19
  %32 = phi i64 [ 0, %19 ], [ %35, %31 ]
  %33 = mul i64 %32, 4
  %34 = getelementptr i8, ptr %29, i64 %33
  store <16 x float> <float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00>, ptr %34, align 4
  %35 = add nuw nsw i64 %32, 16
  %36 = icmp slt i64 %35, %26
  br i1 %36, label %31, label %37

37:                                               ; preds = %31, %19
  %38 = icmp sgt i64 %25, 0
  br i1 %38, label %39, label %46

39:                                               ; preds = %37
  %40 = trunc i64 %25 to i32
  %.splatinsert = insertelement <16 x i32> poison, i32 %40, i64 0
  %.splat = shufflevector <16 x i32> %.splatinsert, <16 x i32> poison, <16 x i32> zeroinitializer
  %41 = icmp ult <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %.splat
  %42 = mul i64 %20, 16384
  %43 = mul i64 %26, 4
  %44 = add i64 %42, %43
  %45 = getelementptr i8, ptr %18, i64 %44
  call void @llvm.masked.store.v16f32.p0(<16 x float> <float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00>, ptr %45, i32 4, <16 x i1> %41)
  br label %46

46:                                               ; preds = %39, %37
  %47 = add nuw nsw i64 %20, 1
  %48 = icmp slt i64 %47, %15
  br i1 %48, label %19, label %30
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: write)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr nocapture, i32 immarg, <16 x i1>) #1

attributes #0 = { nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512" "target-cpu"="x86-64" "target-features"="+aes,+avx,+avx2,+avx512bf16,+avx512bitalg,+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vl,+avx512vnni,+avx512vpopcntdq,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+evex512,+f16c,+fma,+fxsr,+gfni,+lzcnt,+mmx,+movbe,+pclmul,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+vaes,+vpclmulqdq,+x87,+xsave" "tune-cpu"="icelake-server" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: write) }

!llvm.module.flags = !{!0}

!0 = !{i32 8, !"PIC Level", i32 1}
