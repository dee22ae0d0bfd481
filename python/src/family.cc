#include "family.h"

#include <nanobind/stl/string.h>

#include <deque>
#include <memory>
#include <vector>

namespace nb = nanobind;

namespace heddle::python {
namespace {

struct Asked {
  nb::object function;
  std::string text, why;  // of the last call
};

const char* text_at(void* context, const heddle_dim* extents, size_t count, const char** why) {
  const nb::gil_scoped_acquire locked;
  auto* const asked = static_cast<Asked*>(context);
  try {
    nb::dict all;
    for (size_t i = 0; i < count; ++i) all[extents[i].name] = extents[i].size;
    asked->text = nb::cast<std::string>(asked->function(all));
    return asked->text.c_str();
  } catch (const std::exception& error) {
    asked->why = error.what();
    *why = asked->why.c_str();
    return nullptr;
  }
}

void release(void* context) {
  if (Py_IsInitialized() == 0) return;  // the function is gone with the interpreter
  const nb::gil_scoped_acquire locked;
  delete static_cast<Asked*>(context);
}

}  // namespace

heddle_status* open_family(nb::handle source, const std::string& name,
                           const heddle_open_options* options, heddle_model** model) {
  const auto parts = nb::cast<nb::tuple>(source);
  auto asked = std::make_unique<Asked>();
  asked->function = parts[0];
  std::deque<std::string> strings;
  std::vector<heddle_family_dim> dims;
  for (const nb::handle dim : nb::iter(parts[1])) {
    const auto input = nb::cast<std::string>(dim[0]), called = nb::cast<std::string>(dim[2]);
    dims.push_back({strings.emplace_back(input).c_str(), nb::cast<int64_t>(dim[1]),
                    strings.emplace_back(called).c_str()});
  }
  heddle_family family{};
  family.struct_size = sizeof family;
  family.name = name.c_str();
  family.dims = dims.data();
  family.dim_count = dims.size();
  family.text_at = text_at;
  family.context = asked.release();
  family.release = release;
  const nb::gil_scoped_release unlocked;
  return heddle_model_of_family(&family, options, model);
}

}  // namespace heddle::python
