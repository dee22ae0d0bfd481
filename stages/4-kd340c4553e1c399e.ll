; ModuleID = 'kernels'
source_filename = "kernels"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define void @kd340c4553e1c399e_p0(ptr noundef %0, ptr noundef %1, i64 %2, i64 %3, ptr noundef %4) #0 {
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
  %17 = getelementptr ptr, ptr %0, i64 2
  %18 = load ptr, ptr %17, align 8
  %19 = getelementptr ptr, ptr %0, i64 0
  %20 = load ptr, ptr %19, align 8
  %21 = getelementptr ptr, ptr %0, i64 1
  %22 = load ptr, ptr %21, align 8
  %23 = getelementptr ptr, ptr %0, i64 8
  %24 = load ptr, ptr %23, align 8
  br i1 %16, label %25, label %38

25:                                               ; preds = %84, %5
  %26 = phi i64 [ %10, %5 ], [ %85, %84 ]
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
  %37 = getelementptr i8, ptr %24, i64 %36
  br i1 %33, label %39, label %59

38:                                               ; preds = %84, %5
  ret void

39:                                               ; preds = %39, %25
  %40 = phi i64 [ 0, %25 ], [ %57, %39 ]
  %41 = mul i64 %40, 4
  %42 = getelementptr i8, ptr %35, i64 %41
  %43 = load <16 x i32>, ptr %42, align 1
  %44 = icmp sgt <16 x i32> %43, zeroinitializer
  %45 = select <16 x i1> %44, <16 x i32> %43, <16 x i32> zeroinitializer
  %46 = icmp slt <16 x i32> %45, <i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999>
  %47 = select <16 x i1> %46, <16 x i32> %45, <16 x i32> <i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999>
  %48 = mul <16 x i32> %47, <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
  %49 = getelementptr float, ptr %20, <16 x i32> %48
  %50 = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %49, i32 1, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <16 x float> zeroinitializer)
  %51 = mul <16 x i32> %47, <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
  %52 = getelementptr float, ptr %22, <16 x i32> %51
  %53 = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %52, i32 1, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <16 x float> zeroinitializer)
  %54 = fdiv <16 x float> %50, %53
  %55 = mul i64 %40, 4
  %56 = getelementptr i8, ptr %37, i64 %55
  store <16 x float> %54, ptr %56, align 4
  %57 = add nuw nsw i64 %40, 16
  %58 = icmp slt i64 %57, %32
  br i1 %58, label %39, label %59

59:                                               ; preds = %39, %25
  %60 = icmp sgt i64 %31, 0
  br i1 %60, label %61, label %84

61:                                               ; preds = %59
  %62 = trunc i64 %31 to i32
  %.splatinsert = insertelement <16 x i32> poison, i32 %62, i64 0
  %.splat = shufflevector <16 x i32> %.splatinsert, <16 x i32> poison, <16 x i32> zeroinitializer
  %63 = icmp ult <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %.splat
  %64 = mul i64 %26, 16384
  %65 = mul i64 %32, 4
  %66 = add i64 %64, %65
  %67 = getelementptr i8, ptr %18, i64 %66
  %68 = call <16 x i32> @llvm.masked.load.v16i32.p0(ptr %67, i32 1, <16 x i1> %63, <16 x i32> zeroinitializer)
  %69 = icmp sgt <16 x i32> %68, zeroinitializer
  %70 = select <16 x i1> %69, <16 x i32> %68, <16 x i32> zeroinitializer
  %71 = icmp slt <16 x i32> %70, <i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999>
  %72 = select <16 x i1> %71, <16 x i32> %70, <16 x i32> <i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999, i32 1999>
  %73 = mul <16 x i32> %72, <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
  %74 = getelementptr float, ptr %20, <16 x i32> %73
  %75 = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %74, i32 1, <16 x i1> %63, <16 x float> zeroinitializer)
  %76 = mul <16 x i32> %72, <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
  %77 = getelementptr float, ptr %22, <16 x i32> %76
  %78 = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %77, i32 1, <16 x i1> %63, <16 x float> zeroinitializer)
  %79 = fdiv <16 x float> %75, %78
  %80 = mul i64 %26, 16384
  %81 = mul i64 %32, 4
  %82 = add i64 %80, %81
  %83 = getelementptr i8, ptr %24, i64 %82
  call void @llvm.masked.store.v16f32.p0(<16 x float> %79, ptr %83, i32 4, <16 x i1> %63)
  br label %84

84:                                               ; preds = %61, %59
  %85 = add nuw nsw i64 %26, 1
  %86 = icmp slt i64 %85, %15
  br i1 %86, label %25, label %38
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(read)
declare <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr>, i32 immarg, <16 x i1>, <16 x float>) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: read)
declare <16 x i32> @llvm.masked.load.v16i32.p0(ptr nocapture, i32 immarg, <16 x i1>, <16 x i32>) #2

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: write)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr nocapture, i32 immarg, <16 x i1>) #3

; Function Attrs: nounwind
define void @kd340c4553e1c399e_p1(ptr noundef %0, ptr noundef %1, i64 %2, i64 %3, ptr noundef %4) #0 {
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
  %17 = getelementptr ptr, ptr %0, i64 9
  %18 = load ptr, ptr %17, align 8
  %19 = getelementptr ptr, ptr %0, i64 3
  %20 = load ptr, ptr %19, align 8
  %21 = getelementptr ptr, ptr %0, i64 8
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
  %41 = load i32, ptr %40, align 1
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
  %56 = load float, ptr %55, align 4
  %57 = fadd float %53, %56
  store float %57, ptr %52, align 4
  br label %58

58:                                               ; preds = %50, %37
  %59 = add nuw nsw i64 %38, 1
  %60 = icmp slt i64 %59, 10000
  br i1 %60, label %37, label %47
}

; Function Attrs: nounwind
define void @kd340c4553e1c399e_p2(ptr noundef %0, ptr noundef %1, i64 %2, i64 %3, ptr noundef %4) #0 {
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
  %17 = getelementptr ptr, ptr %0, i64 9
  %18 = load ptr, ptr %17, align 8
  %19 = getelementptr ptr, ptr %0, i64 5
  %20 = load ptr, ptr %19, align 8
  %21 = getelementptr ptr, ptr %0, i64 0
  %22 = load ptr, ptr %21, align 8
  %23 = getelementptr ptr, ptr %0, i64 4
  %24 = load ptr, ptr %23, align 8
  %25 = getelementptr ptr, ptr %0, i64 6
  %26 = load ptr, ptr %25, align 8
  %27 = getelementptr ptr, ptr %0, i64 7
  %28 = load ptr, ptr %27, align 8
  br i1 %16, label %29, label %31

29:                                               ; preds = %79, %5
  %30 = phi i64 [ %10, %5 ], [ %108, %79 ]
  br label %32

31:                                               ; preds = %79, %5
  ret void

32:                                               ; preds = %32, %29
  %.03 = phi <16 x float> [ zeroinitializer, %29 ], [ %76, %32 ]
  %.02 = phi <16 x float> [ zeroinitializer, %29 ], [ %66, %32 ]
  %.01 = phi <16 x float> [ zeroinitializer, %29 ], [ %56, %32 ]
  %.0 = phi <16 x float> [ zeroinitializer, %29 ], [ %46, %32 ]
  %33 = phi i64 [ 0, %29 ], [ %77, %32 ]
  %34 = mul i64 %33, 256
  %35 = getelementptr i8, ptr %18, i64 %34
  %36 = load <16 x float>, ptr %35, align 4
  %37 = fmul <16 x float> %36, <float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000>
  %38 = fadd <16 x float> %37, <float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000>
  %39 = mul i64 %33, 256
  %40 = getelementptr i8, ptr %20, i64 %39
  store <16 x float> %38, ptr %40, align 4
  %41 = mul i64 %33, 256
  %42 = getelementptr i8, ptr %22, i64 %41
  %43 = load <16 x float>, ptr %42, align 1
  %44 = fsub <16 x float> %38, %43
  %45 = call <16 x float> @llvm.fabs.v16f32(<16 x float> %44)
  %46 = fadd <16 x float> %.0, %45
  %47 = getelementptr i8, ptr %35, i64 64
  %48 = load <16 x float>, ptr %47, align 4
  %49 = fmul <16 x float> %48, <float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000>
  %50 = fadd <16 x float> %49, <float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000>
  %51 = getelementptr i8, ptr %40, i64 64
  store <16 x float> %50, ptr %51, align 4
  %52 = getelementptr i8, ptr %42, i64 64
  %53 = load <16 x float>, ptr %52, align 1
  %54 = fsub <16 x float> %50, %53
  %55 = call <16 x float> @llvm.fabs.v16f32(<16 x float> %54)
  %56 = fadd <16 x float> %.01, %55
  %57 = getelementptr i8, ptr %35, i64 128
  %58 = load <16 x float>, ptr %57, align 4
  %59 = fmul <16 x float> %58, <float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000>
  %60 = fadd <16 x float> %59, <float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000>
  %61 = getelementptr i8, ptr %40, i64 128
  store <16 x float> %60, ptr %61, align 4
  %62 = getelementptr i8, ptr %42, i64 128
  %63 = load <16 x float>, ptr %62, align 1
  %64 = fsub <16 x float> %60, %63
  %65 = call <16 x float> @llvm.fabs.v16f32(<16 x float> %64)
  %66 = fadd <16 x float> %.02, %65
  %67 = getelementptr i8, ptr %35, i64 192
  %68 = load <16 x float>, ptr %67, align 4
  %69 = fmul <16 x float> %68, <float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000>
  %70 = fadd <16 x float> %69, <float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000>
  %71 = getelementptr i8, ptr %40, i64 192
  store <16 x float> %70, ptr %71, align 4
  %72 = getelementptr i8, ptr %42, i64 192
  %73 = load <16 x float>, ptr %72, align 1
  %74 = fsub <16 x float> %70, %73
  %75 = call <16 x float> @llvm.fabs.v16f32(<16 x float> %74)
  %76 = fadd <16 x float> %.03, %75
  %77 = add nuw nsw i64 %33, 1
  %78 = icmp slt i64 %77, 31
  br i1 %78, label %32, label %79

79:                                               ; preds = %32
  %80 = getelementptr i8, ptr %18, i64 7936
  %81 = load <16 x float>, ptr %80, align 4
  %82 = fmul <16 x float> %81, <float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000, float 0x3FEB333340000000>
  %83 = fadd <16 x float> %82, <float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000, float 0x3F13A92A40000000>
  %84 = getelementptr i8, ptr %20, i64 7936
  store <16 x float> %83, ptr %84, align 4
  %85 = getelementptr i8, ptr %22, i64 7936
  %86 = load <16 x float>, ptr %85, align 1
  %87 = fsub <16 x float> %83, %86
  %88 = call <16 x float> @llvm.fabs.v16f32(<16 x float> %87)
  %89 = fadd <16 x float> %46, %88
  %90 = fadd <16 x float> %89, %66
  %91 = fadd <16 x float> %56, %76
  %92 = fadd <16 x float> %90, %91
  %93 = shufflevector <16 x float> %92, <16 x float> poison, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %94 = fadd <16 x float> %92, %93
  %95 = shufflevector <16 x float> %94, <16 x float> poison, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11>
  %96 = fadd <16 x float> %94, %95
  %97 = shufflevector <16 x float> %96, <16 x float> poison, <16 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13>
  %98 = fadd <16 x float> %96, %97
  %99 = shufflevector <16 x float> %98, <16 x float> poison, <16 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14>
  %100 = fadd <16 x float> %98, %99
  %101 = extractelement <16 x float> %100, i64 0
  %102 = load i32, ptr %24, align 1
  %103 = add i32 %102, 1
  store i32 %103, ptr %26, align 4
  %104 = fcmp ogt float %101, 0x3E7AD7F2A0000000
  %105 = icmp slt i32 %103, 30
  %106 = and i1 %104, %105
  %107 = zext i1 %106 to i8
  store i8 %107, ptr %28, align 1
  %108 = add nuw nsw i64 %30, 1
  %109 = icmp slt i64 %108, %15
  br i1 %109, label %29, label %31
}

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare <16 x float> @llvm.fabs.v16f32(<16 x float>) #4

attributes #0 = { nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512" "target-cpu"="x86-64" "target-features"="+aes,+avx,+avx2,+avx512bf16,+avx512bitalg,+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vl,+avx512vnni,+avx512vpopcntdq,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+evex512,+f16c,+fma,+fxsr,+gfni,+lzcnt,+mmx,+movbe,+pclmul,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+vaes,+vpclmulqdq,+x87,+xsave" "tune-cpu"="icelake-server" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(read) }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(argmem: read) }
attributes #3 = { nocallback nofree nosync nounwind willreturn memory(argmem: write) }
attributes #4 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.module.flags = !{!0}

!0 = !{i32 8, !"PIC Level", i32 1}
