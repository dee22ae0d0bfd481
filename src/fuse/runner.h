// The runner over covers (pass/runner.h). Include it where run() is defined for a context.
#pragma once

#include "fuse/passes.h"
#include "pass/runner.h"

namespace heddle::pass {

template <>
struct UnitTraits<fuse::Covers> {
  static constexpr std::string_view kSuffix = ".hlo";
  static Status verify(const fuse::Covers& covers) { return fuse::verify(covers); }
  static std::unique_ptr<fuse::Covers> copy(const fuse::Covers& covers) {
    return fuse::copy(covers);
  }
  static std::string text(const fuse::Covers& covers) { return fuse::to_string(covers); }
  static std::string short_text(const fuse::Covers& covers) {
    return fuse::to_string(covers, 65'536);
  }
  static std::string_view begun_by(const fuse::Covers& covers) {
    return covers.is_open ? "open_cover" : "";
  }
};

}  // namespace heddle::pass
