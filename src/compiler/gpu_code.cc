#include "compiler/gpu_code.h"

#include <optional>

#include "cache/object_cache.h"
#include "emit/cuda/nvrtc.h"

namespace heddle::compiler {

namespace {

// Bytes of arguments that a launch may have (sm_70 and later).
constexpr int64_t kMostArgumentBytes = 32764;

Result<std::vector<uint8_t>> assemble_by_nvrtc(const std::string& text,
                                               const std::string& architecture) {
  auto nvrtc = emit::cuda::Nvrtc::open();
  if (!nvrtc) return tl::unexpected(nvrtc.error());
  HEDDLE_ASSIGN_OR_RETURN(emit::cuda::Cubin cubin, (*nvrtc)->compile(text, architecture));
  return std::move(cubin.code);
}

}  // namespace

GpuCodeGenerator::GpuCodeGenerator(const target::Target& target, GpuAssembler assembler)
    : target_(target), assembler_(std::move(assembler)) {}

Status GpuCodeGenerator::add(const stitch::Stitched& stitched) {
  const kernel::Kernel& kernel = stitched.kernel;
  const int64_t buffers = kernel.global_count(), dims = std::ssize(kernel.dims);
  if ((buffers + dims) * 8 > kMostArgumentBytes)
    return user_error("kernel {}: {} arrays are more than a launch may have", kernel.name, buffers);
  HEDDLE_ASSIGN_OR_RETURN(emit::cuda::CudaText text,
                          emit::cuda::to_cuda(kernel, target_, !stitch::may_overwrite(stitched)));
  for (const emit::cuda::Launch& launch : text.launches)
    functions_.push_back({launch.function, launch.blocks, launch.threads,
                          launch.dynamic_scratch_bytes(), static_cast<int>(buffers),
                          static_cast<int>(dims)});
  texts_.push_back(std::move(text));
  return {};
}

Result<std::vector<uint8_t>> GpuCodeGenerator::object(const std::string& cache_directory) const {
  std::vector<const emit::cuda::CudaText*> kernels;
  for (const emit::cuda::CudaText& one : texts_) kernels.push_back(&one);
  const std::string text = emit::cuda::join_kernels(kernels);
  program::GpuCode code{emit::cuda::architecture(target_), functions_, {}};
  std::optional<cache::ObjectCache> cache;
  cache::Key key;
  cache::Lookup lookup;  // other processes wait until the cubin is stored
  // Apart from NVRTC itself the cubin depends on the text and the architecture only.
  if (!assembler_ && !cache_directory.empty()) {
    key = cache::make_key({"cubin", text, code.architecture});
    auto opened = cache::ObjectCache::open(cache_directory);
    if (opened) cache.emplace(std::move(*opened));
    if (cache) lookup = cache->find_or_make(key);
    if (lookup.object) {
      code.cubin = std::move(*lookup.object);
      return program::encode_gpu_code(code);
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(code.cubin, (assembler_ ? assembler_ : GpuAssembler(assemble_by_nvrtc))(
                                          text, code.architecture));
  // A cache that cannot be written only costs time.
  if (cache) (void)cache->store(key, code.cubin);
  return program::encode_gpu_code(code);
}

}  // namespace heddle::compiler
