#include "options.h"

#include <nanobind/stl/string.h>

#include "failure.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

int64_t number_of(nb::handle value, const std::string& what) {
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  check_python(index.is_valid());
  const int64_t number = PyLong_AsLongLong(index.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    fail("Error", what + ": a number that is too large");
  }
  return number;
}

std::string string_of(nb::handle value) {
  std::string text;
  if (!nb::try_cast(value, text)) text = nb::cast<std::string>(nb::str(value));
  return text;
}

// What the command calls the option of a member, with underscores.
std::string option_of(std::string member) {
  constexpr std::string_view kUnit = "_bytes";
  if (member.ends_with(kUnit)) member.resize(member.size() - kUnit.size());
  return member;
}

}  // namespace

const char* OpenOptions::text(nb::handle value) {
  return strings_.emplace_back(string_of(value)).c_str();
}

std::vector<heddle_dim> OpenOptions::dims(nb::handle from) {
  std::vector<heddle_dim> all;
  for (const auto& [name, size] : nb::cast<nb::dict>(from)) {
    const char* const key = text(name);
    all.push_back({key, number_of(size, std::string("dimension ") + key)});
  }
  return all;
}

std::vector<heddle_value> OpenOptions::values(nb::handle from) {
  std::vector<heddle_value> all;
  for (const auto& [name, value] : nb::cast<nb::dict>(from)) {
    Input& array = arrays_.emplace_back();
    array.read(value, -1);
    all.push_back({text(name), array.type(), array.dims(), array.rank(), array.data()});
  }
  return all;
}

OpenOptions::OpenOptions(const nb::dict& from) {
  options_.struct_size = sizeof options_;
  dims_ = dims(from["dims"]);
  bounds_ = dims(from["bounds"]);
  for (const auto& [name, extents] : nb::cast<nb::dict>(from["shapes"])) {
    std::vector<int64_t>& list = extents_.emplace_back();
    const char* const key = text(name);
    for (const nb::handle extent : nb::iter(extents))
      list.push_back(number_of(extent, std::string("shape of ") + key));
    shapes_.push_back({key, list.data(), static_cast<int64_t>(list.size())});
  }
  constants_ = values(from["constants"]);
  values_ = values(from["values"]);
  for (const nb::handle word : nb::cast<nb::list>(from["texts"])) texts_.push_back(text(word));
  options_.dims = dims_.data();
  options_.dim_count = dims_.size();
  options_.bounds = bounds_.data();
  options_.bound_count = bounds_.size();
  options_.shapes = shapes_.data();
  options_.shape_count = shapes_.size();
  options_.constants = constants_.data();
  options_.constant_count = constants_.size();
  options_.values = values_.data();
  options_.value_count = values_.size();
  options_.texts = texts_.data();
  options_.text_count = texts_.size();
  options_.random_constants = nb::cast<bool>(from["random_constants"]) ? 1 : 0;
  if (!from["module"].is_none()) options_.module = text(from["module"]);
  if (!from["kv_cache"].is_none()) options_.kv_cache = text(from["kv_cache"]);
}

// A row of compiler/options.def for each member: the one list of options.
nb::list CompileOptions::names() {
  nb::list all;
#define HEDDLE_CHOICE(part, Type, field, ...) all.append(option_of(#field));
#define HEDDLE_TEXT(part, Type, field, ...) all.append(option_of(#field));
#define HEDDLE_NUMBER(part, Type, field, ...) all.append(option_of(#field));
#define HEDDLE_FOLDER(part, field, help) all.append(option_of(#field));
#include "compiler/options.def"
  all.append("background");
  return all;
}

CompileOptions::CompileOptions(const nb::dict& from) {
  options_.struct_size = sizeof options_;
  for (const auto& [name, value] : from) {
    const std::string key = string_of(name);
    bool known = key == "background";
    if (known) options_.background = nb::cast<bool>(value) ? 1 : 0;
#define HEDDLE_TEXT_OPTION(field)                                                           \
  if (key == #field) {                                                                      \
    known = true;                                                                           \
    if (!value.is_none()) options_.field = strings_.emplace_back(string_of(value)).c_str(); \
  }
#define HEDDLE_CHOICE(part, Type, field, ...) HEDDLE_TEXT_OPTION(field)
#define HEDDLE_TEXT(part, Type, field, ...) HEDDLE_TEXT_OPTION(field)
#define HEDDLE_FOLDER(part, field, help) HEDDLE_TEXT_OPTION(field)
#define HEDDLE_NUMBER(part, Type, field, C, plain, least, most, value_help, help)                 \
  if (key == option_of(#field)) {                                                                 \
    known = true;                                                                                 \
    if (!value.is_none()) {                                                                       \
      const int64_t number = number_of(value, key);                                               \
      if (number != -1 && number < 0)                                                             \
        fail("Error", key + " is " + std::to_string(number) + "; wanted 0 or more");              \
      if (number > (most))                                                                        \
        fail("Error",                                                                             \
             key + " is " + std::to_string(number) + "; wanted at most " + std::to_string(most)); \
      options_.field = static_cast<C>(number);                                                    \
    }                                                                                             \
  }
#include "compiler/options.def"
    if (known) continue;
    std::string all;
    for (const nb::handle one : names()) all += (all.empty() ? "" : ", ") + string_of(one);
    throw nb::type_error(("no option '" + key + "'; the options are " + all).c_str());
  }
}

}  // namespace heddle::python
