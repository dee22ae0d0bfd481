#include "options.h"

#include <charconv>
#include <type_traits>
#include <variant>

#include "error.h"
#include "wire.h"

namespace heddle::pjrt {
namespace {

using Member = std::variant<const char * heddle_compile_options::*,
                            int32_t heddle_compile_options::*, int64_t heddle_compile_options::*>;

// A row of compiler/options.def for each.
constexpr std::pair<std::string_view, Member> kOptions[] = {
#define HEDDLE_CHOICE(part, Type, field, ...) {#field, &heddle_compile_options::field},
#define HEDDLE_TEXT(part, Type, field, ...) {#field, &heddle_compile_options::field},
#define HEDDLE_NUMBER(part, Type, field, ...) {#field, &heddle_compile_options::field},
#define HEDDLE_FOLDER(part, field, help) {#field, &heddle_compile_options::field},
#include "compiler/options.def"
};

template <typename Number>
Number number_of(const std::string& name, const std::string& text) {
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end)
    invalid("option " + name + ": '" + text + "' is no number");
  return number;
}

void write(const std::string& name, const std::string& value, const Member& member,
           heddle_compile_options* to) {
  std::visit(
      [&](auto at) {
        using Type = std::remove_reference_t<decltype(to->*at)>;
        if constexpr (std::is_integral_v<Type>)
          to->*at = number_of<Type>(name, value);
        else
          to->*at = value.c_str();
      },
      member);
}

// OptionOverrideProto: one of string_field = 1, bool_field = 2, int_field = 3, double_field = 4.
std::string override_value(std::string_view bytes) {
  std::string value;
  for (WireReader wire(bytes); wire.next();) {
    if (wire.number() == 1) value = wire.bytes();
    if (wire.number() == 2) value = wire.integer() != 0 ? "true" : "false";
    if (wire.number() == 3) value = std::to_string(wire.integer());
    if (wire.number() == 4) value = std::to_string(wire.real());
  }
  return value;
}

}  // namespace

void Options::set(const std::string& name, const std::string& value) {
  std::string names;
  for (const auto& [known, member] : kOptions) {
    names += (names.empty() ? "" : ", ") + std::string(known);
    if (known != name) continue;
    heddle_compile_options checked{};
    write(name, value, member, &checked);
    values_[name] = value;
    return;
  }
  invalid("No such compile option: '" + name + "'; heddle's are " + names);
}

heddle_compile_options Options::for_heddle() const {
  heddle_compile_options result{};
  result.struct_size = sizeof result;
  for (const auto& [name, value] : values_)
    for (const auto& [known, member] : kOptions)
      if (known == name) write(name, value, member, &result);
  return result;
}

std::string Options::text() const {
  std::string text;
  for (const auto& [name, value] : values_) text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

CompileRequest read_compile_options(std::string_view bytes) {
  CompileRequest request;
  for (WireReader wire(bytes); wire.next();) {
    if (wire.number() == 2) request.tupled_parameters = wire.integer() != 0;
    if (wire.number() == 3) {  // executable_build_options
      for (WireReader build(wire.bytes()); build.next();) {
        if (build.number() == 4) request.replicas = build.integer();
        if (build.number() == 5) request.partitions = build.integer();
      }
    }
    if (wire.number() == 7) {  // an entry of env_option_overrides
      std::string name, value;
      for (WireReader entry(wire.bytes()); entry.next();) {
        if (entry.number() == 1) name = entry.bytes();
        if (entry.number() == 2) value = override_value(entry.bytes());
      }
      request.overrides[name] = value;
    }
  }
  return request;
}

Options options_for(const Options& client, const CompileRequest& request) {
  if (request.replicas > 1 || request.partitions > 1)
    unimplemented("a program for " + std::to_string(request.replicas) + " replicas and " +
                  std::to_string(request.partitions) + " partitions: heddle has one device");
  if (request.tupled_parameters) unimplemented("parameters in a tuple");
  Options options = client;
  for (const auto& [name, value] : request.overrides)
    if (!name.starts_with("xla_")) options.set(name, value);
  return options;
}

}  // namespace heddle::pjrt
