#include "kernel/stmt_text.h"

namespace heddle::kernel {

std::string_view loop_text(LoopKind kind) {
  constexpr std::string_view kNames[] = {"serial",   "unrolled", "vector",  "thread",
                                         "subgroup", "block",    "parallel"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view space_text(Space space) {
  constexpr std::string_view kNames[] = {"reg", "fragment", "scratch", "global"};
  return kNames[static_cast<size_t>(space)];
}

std::string_view access_text(Access access) {
  constexpr std::string_view kNames[] = {"in", "out", "inout"};
  return kNames[static_cast<size_t>(access)];
}

std::string buffer_text(const Kernel& kernel, const Buffer& buffer) {
  std::string text = fmt::format("buffer {}: {}[", buffer.name, tensor::type_name(buffer.type));
  for (size_t i = 0; i < buffer.extents.size(); ++i) {
    int64_t extent = buffer.extents[i];
    if (i) text += ',';
    if (extent >= 0) {
      text += fmt::format("{}", extent);
    } else {
      auto which = static_cast<size_t>(-1 - extent);
      text += which < kernel.dims.size() ? kernel.dims[which] : "?";
    }
  }
  text += fmt::format("] {}", space_text(buffer.space));
  if (buffer.space == Space::global) text += fmt::format(" {}", access_text(buffer.access));
  if (buffer.lanes != 0) text += fmt::format(" lanes {}", buffer.lanes);
  if (buffer.space == Space::scratch) text += fmt::format(" at {}", buffer.offset_bytes);
  if (buffer.aligned_bytes != 0) text += fmt::format(" aligned {}", buffer.aligned_bytes);
  return text;
}

}  // namespace heddle::kernel
