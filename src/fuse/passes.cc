#include "fuse/passes.h"

#include "fuse/open_cover.h"
#include "hlo/text.h"
#include "hlo/verify.h"

namespace heddle::fuse {

Covers::Covers(hlo::Module* rewritten) : module(rewritten) {}
Covers::~Covers() = default;

Status check_closed(const Covers& covers) {
  if (!covers.is_open) return {};
  return user_error("a cover is open: run make_kernels before passes that change the module");
}

Status check_open(const Covers& covers) {
  if (covers.is_open) return {};
  return user_error("no cover is open: run open_cover before it and make_kernels after it");
}

Result<bool> over_each(Covers& covers, const Context& context,
                       Result<bool> (*pass)(OpenCover&, const Context&)) {
  HEDDLE_RETURN_IF_ERROR(check_open(covers));
  bool changed = false;
  for (const auto& cover : covers.open) {
    HEDDLE_ASSIGN_OR_RETURN(const bool changed_one, pass(*cover, context));
    changed |= changed_one;
  }
  return changed;
}

Status verify(const Covers& covers) {
  HEDDLE_RETURN_IF_ERROR(hlo::verify(*covers.module));
  for (const auto& cover : covers.open)
    if (const Decision right = cover->verify(); !right)
      return user_error("{}: {}", right.code(), right.reason());
  return {};
}

std::string to_string(const Covers& covers, int64_t max_constant_elems) {
  std::string text;
  for (const auto& cover : covers.open) text += cover->text();
  return text + hlo::to_string(*covers.module, {.max_constant_elems = max_constant_elems});
}

std::unique_ptr<Covers> copy(const Covers& covers) {
  HEDDLE_CHECK(!covers.is_open, "an open cover cannot be copied");
  std::unique_ptr<hlo::Module> module = covers.module->clone();
  auto made = std::make_unique<Covers>(module.get());
  made->own_module = std::move(module);
  return made;
}

}  // namespace heddle::fuse
