; ModuleID = 'kernels'
source_filename = "kernels"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define void @k6fccb4d39a63e42e_p0(ptr noundef %0, ptr noundef %1, i64 %2, i64 %3, ptr noundef %4) #0 {
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
  %19 = getelementptr ptr, ptr %0, i64 3
  %20 = load ptr, ptr %19, align 8
  %21 = getelementptr ptr, ptr %0, i64 1
  %22 = load ptr, ptr %21, align 8
  %23 = getelementptr ptr, ptr %0, i64 4
  %24 = load ptr, ptr %23, align 8
  br i1 %16, label %25, label %42

25:                                               ; preds = %92, %5
  %26 = phi i64 [ %10, %5 ], [ %93, %92 ]
  %27 = mul i64 %26, 4096
  %28 = sub i64 10000, %27
  %29 = icmp slt i64 %28, 4096
  %30 = select i1 %29, i64 %28, i64 4096
  %31 = srem i64 %30, 16
  %32 = sub i64 %30, %31
  %33 = icmp slt i64 0, %32
  %34 = mul i64 %26, 16384
  %35 = getelementptr i8, ptr %18, i64 %34
  %36 = mul i64 %26, 16384
  %37 = getelementptr i8, ptr %20, i64 %36
  %38 = mul i64 %26, 16384
  %39 = getelementptr i8, ptr %22, i64 %38
  %40 = mul i64 %26, 16384
  %41 = getelementptr i8, ptr %24, i64 %40
  br i1 %33, label %43, label %63

42:                                               ; preds = %92, %5
  ret void

43:                                               ; preds = %43, %25
  %44 = phi i64 [ 0, %25 ], [ %61, %43 ]
  %45 = mul i64 %44, 4
  %46 = getelementptr i8, ptr %35, i64 %45
  %47 = load <16 x i32>, ptr %46, align 1
  %48 = icmp slt <16 x i32> %47, zeroinitializer
  %49 = add <16 x i32> %47, <i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000>
  %50 = select <16 x i1> %48, <16 x i32> %49, <16 x i32> %47
  %51 = mul i64 %44, 4
  %52 = getelementptr i8, ptr %37, i64 %51
  store <16 x i32> %50, ptr %52, align 4
  %53 = mul i64 %44, 4
  %54 = getelementptr i8, ptr %39, i64 %53
  %55 = load <16 x i32>, ptr %54, align 1
  %56 = icmp slt <16 x i32> %55, zeroinitializer
  %57 = add <16 x i32> %55, <i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000>
  %58 = select <16 x i1> %56, <16 x i32> %57, <16 x i32> %55
  %59 = mul i64 %44, 4
  %60 = getelementptr i8, ptr %41, i64 %59
  store <16 x i32> %58, ptr %60, align 4
  %61 = add nuw nsw i64 %44, 16
  %62 = icmp slt i64 %61, %32
  br i1 %62, label %43, label %63

63:                                               ; preds = %43, %25
  %64 = icmp sgt i64 %31, 0
  br i1 %64, label %65, label %92

65:                                               ; preds = %63
  %66 = trunc i64 %31 to i32
  %.splatinsert = insertelement <16 x i32> poison, i32 %66, i64 0
  %.splat = shufflevector <16 x i32> %.splatinsert, <16 x i32> poison, <16 x i32> zeroinitializer
  %67 = icmp ult <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %.splat
  %68 = mul i64 %26, 16384
  %69 = mul i64 %32, 4
  %70 = add i64 %68, %69
  %71 = getelementptr i8, ptr %18, i64 %70
  %72 = call <16 x i32> @llvm.masked.load.v16i32.p0(ptr %71, i32 1, <16 x i1> %67, <16 x i32> zeroinitializer)
  %73 = icmp slt <16 x i32> %72, zeroinitializer
  %74 = add <16 x i32> %72, <i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000>
  %75 = select <16 x i1> %73, <16 x i32> %74, <16 x i32> %72
  %76 = mul i64 %26, 16384
  %77 = mul i64 %32, 4
  %78 = add i64 %76, %77
  %79 = getelementptr i8, ptr %20, i64 %78
  call void @llvm.masked.store.v16i32.p0(<16 x i32> %75, ptr %79, i32 4, <16 x i1> %67)
  %80 = mul i64 %26, 16384
  %81 = mul i64 %32, 4
  %82 = add i64 %80, %81
  %83 = getelementptr i8, ptr %22, i64 %82
  %84 = call <16 x i32> @llvm.masked.load.v16i32.p0(ptr %83, i32 1, <16 x i1> %67, <16 x i32> zeroinitializer)
  %85 = icmp slt <16 x i32> %84, zeroinitializer
  %86 = add <16 x i32> %84, <i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000, i32 2000>
  %87 = select <16 x i1> %85, <16 x i32> %86, <16 x i32> %84
  %88 = mul i64 %26, 16384
  %89 = mul i64 %32, 4
  %90 = add i64 %88, %89
  %91 = getelementptr i8, ptr %24, i64 %90
  call void @llvm.masked.store.v16i32.p0(<16 x i32> %87, ptr %91, i32 4, <16 x i1> %67)
  br label %92

92:                                               ; preds = %65, %63
  %93 = add nuw nsw i64 %26, 1
  %94 = icmp slt i64 %93, %15
  br i1 %94, label %25, label %42
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: read)
declare <16 x i32> @llvm.masked.load.v16i32.p0(ptr nocapture, i32 immarg, <16 x i1>, <16 x i32>) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: write)
declare void @llvm.masked.store.v16i32.p0(<16 x i32>, ptr nocapture, i32 immarg, <16 x i1>) #2

; Function Attrs: nounwind
define void @k6fccb4d39a63e42e_p1(ptr noundef %0, ptr noundef %1, i64 %2, i64 %3, ptr noundef %4) #0 {
  %6 = icmp sgt i64 %2, 0
  %7 = select i1 %6, i64 %2, i64 0
  %8 = icmp slt i64 %7, 8
  %9 = select i1 %8, i64 %7, i64 8
  %10 = sub i64 %9, 0
  %11 = icmp sgt i64 %3, 0
  %12 = select i1 %11, i64 %3, i64 0
  %13 = icmp slt i64 %12, 8
  %14 = select i1 %13, i64 %12, i64 8
  %15 = sub i64 %14, 0
  %16 = icmp slt i64 %10, %15
  %17 = getelementptr ptr, ptr %0, i64 6
  %18 = load ptr, ptr %17, align 8
  %19 = getelementptr ptr, ptr %0, i64 3
  %20 = load ptr, ptr %19, align 8
  %21 = getelementptr ptr, ptr %0, i64 2
  %22 = load ptr, ptr %21, align 8
  br i1 %16, label %23, label %28

23:                                               ; preds = %47, %5
  %24 = phi i64 [ %10, %5 ], [ %48, %47 ]
  %25 = mul i64 %24, 250
  %26 = mul i64 %24, 1000
  %27 = getelementptr i8, ptr %18, i64 %26
  br label %29

28:                                               ; preds = %47, %5
  ret void

29:                                               ; preds = %29, %23
  %30 = phi i64 [ 0, %23 ], [ %33, %29 ]
  %31 = mul i64 %30, 4
  %32 = getelementptr i8, ptr %27, i64 %31
  store <16 x float> zeroinitializer, ptr %32, align 4
  %33 = add nuw nsw i64 %30, 16
  %34 = icmp slt i64 %33, 240
  br i1 %34, label %29, label %35

35:                                               ; preds = %29
  %36 = getelementptr i8, ptr %27, i64 960
  call void @llvm.masked.store.v16f32.p0(<16 x float> zeroinitializer, ptr %36, i32 4, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  br label %37

37:                                               ; preds = %58, %35
  %38 = phi i64 [ 0, %35 ], [ %59, %58 ]
  %39 = mul i64 %38, 4
  %40 = getelementptr i8, ptr %20, i64 %39
  %41 = load i32, ptr %40, align 4
  %42 = sext i32 %41 to i64
  %43 = sub i64 %42, %25
  %44 = icmp sge i64 %43, 0
  %45 = icmp slt i64 %43, 250
  %46 = and i1 %44, %45
  br i1 %46, label %50, label %58

47:                                               ; preds = %58
  %48 = add nuw nsw i64 %24, 1
  %49 = icmp slt i64 %48, %15
  br i1 %49, label %23, label %28

50:                                               ; preds = %37
  %51 = mul i64 %42, 4
  %52 = getelementptr i8, ptr %18, i64 %51
  %53 = load float, ptr %52, align 4
  %54 = mul i64 %38, 4
  %55 = getelementptr i8, ptr %22, i64 %54
  %56 = load float, ptr %55, align 1
  %57 = fadd float %53, %56
  store float %57, ptr %52, align 4
  br label %58

58:                                               ; preds = %50, %37
  %59 = add nuw nsw i64 %38, 1
  %60 = icmp slt i64 %59, 10000
  br i1 %60, label %37, label %47
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: write)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr nocapture, i32 immarg, <16 x i1>) #2

; Function Attrs: nounwind
define void @k6fccb4d39a63e42e_p2(ptr noundef %0, ptr noundef %1, i64 %2, i64 %3, ptr noundef %4) #0 {
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
  %17 = getelementptr ptr, ptr %0, i64 6
  %18 = load ptr, ptr %17, align 8
  %19 = getelementptr ptr, ptr %0, i64 5
  %20 = load ptr, ptr %19, align 8
  br i1 %16, label %21, label %23

21:                                               ; preds = %35, %5
  %22 = phi i64 [ %10, %5 ], [ %36, %35 ]
  br label %24

23:                                               ; preds = %35, %5
  ret void

24:                                               ; preds = %24, %21
  %25 = phi i64 [ 0, %21 ], [ %33, %24 ]
  %26 = mul i64 %25, 4
  %27 = getelementptr i8, ptr %18, i64 %26
  %28 = load <16 x float>, ptr %27, align 4
  %29 = fcmp ogt <16 x float> <float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00>, %28
  %30 = select <16 x i1> %29, <16 x float> <float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00>, <16 x float> %28
  %31 = mul i64 %25, 4
  %32 = getelementptr i8, ptr %20, i64 %31
  store <16 x float> %30, ptr %32, align 4
  %33 = add nuw nsw i64 %25, 16
  %34 = icmp slt i64 %33, 2000
  br i1 %34, label %24, label %35

35:                                               ; preds = %24
  %36 = add nuw nsw i64 %22, 1
  %37 = icmp slt i64 %36, %15
  br i1 %37, label %21, label %23
}

attributes #0 = { nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512" "target-cpu"="x86-64" "target-features"="+aes,+avx,+avx2,+avx512bf16,+avx512bitalg,+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vl,+avx512vnni,+avx512vpopcntdq,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+evex512,+f16c,+fma,+fxsr,+gfni,+lzcnt,+mmx,+movbe,+pclmul,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+vaes,+vpclmulqdq,+x87,+xsave" "tune-cpu"="icelake-server" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: read) }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(argmem: write) }

!llvm.module.flags = !{!0}

!0 = !{i32 8, !"PIC Level", i32 1}
