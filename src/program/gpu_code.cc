#include "program/gpu_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace heddle::program {

namespace {

constexpr int64_t kMostBlocks = INT32_MAX;
constexpr int kMostThreads = 1024, kMostArguments = 4096;
constexpr size_t kLongestLine = 1024;

}  // namespace

// "heddle.cubin 1 sm_90 <functions> <bytes>", one line per function, the cubin.
std::vector<uint8_t> encode_gpu_code(const GpuCode& code) {
  std::string text = fmt::format("heddle.cubin 1 {} {} {}\n", code.architecture,
                                 code.functions.size(), code.cubin.size());
  for (const GpuFunction& f : code.functions)
    text += fmt::format("{} {} {} {} {} {}\n", f.name, f.blocks, f.threads, f.scratch_bytes,
                        f.buffers, f.dims);
  std::vector<uint8_t> bytes(text.begin(), text.end());
  bytes.insert(bytes.end(), code.cubin.begin(), code.cubin.end());
  return bytes;
}

Result<GpuCode> decode_gpu_code(std::span<const uint8_t> bytes) {
  size_t at = 0;
  const auto next_line = [&]() -> std::string {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto limit =
        begin + static_cast<std::ptrdiff_t>(std::min(bytes.size() - at, kLongestLine));
    const auto end = std::find(begin, limit, uint8_t{'\n'});
    if (end == limit) return {};
    at += static_cast<size_t>(end - begin) + 1;
    return {begin, end};
  };
  GpuCode code;
  std::istringstream head(next_line());
  std::string mark;
  int version = 0;
  size_t count = 0, size = 0;
  head >> mark >> version >> code.architecture >> count >> size;
  if (!head || mark != "heddle.cubin" || version != 1)
    return user_error("GPU code: the first line is not 'heddle.cubin 1 …': compile it again");
  for (size_t i = 0; i < count; ++i) {
    GpuFunction f;
    std::istringstream line(next_line());
    line >> f.name >> f.blocks >> f.threads >> f.scratch_bytes >> f.buffers >> f.dims;
    const bool good = line && f.blocks >= 0 && f.blocks <= kMostBlocks && f.threads >= 1 &&
                      f.threads <= kMostThreads && f.scratch_bytes >= 0 && f.buffers >= 0 &&
                      f.buffers <= kMostArguments && f.dims >= 0 && f.dims <= kMostArguments;
    if (!good) return user_error("GPU code: the line of function {} is damaged", i);
    code.functions.push_back(std::move(f));
  }
  if (bytes.size() - at != size)
    return user_error("GPU code: {} bytes of code, {} are there", size, bytes.size() - at);
  code.cubin.assign(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
  return code;
}

}  // namespace heddle::program
