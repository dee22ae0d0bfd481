#include "report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "terminal.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;
using tensor::Literal;

constexpr int64_t kFew = 32;  // elements that are shown themselves

Literal first_elements(const Literal& value, int64_t count) {
  return Literal::view(tensor::Shape::array(value.type(), {count}), value.data(),
                       std::make_shared<Literal>(value));
}

double size_of(const Literal& value, int64_t i) {
  if (tensor::is_complex(value.type())) return std::abs(value.get_complex(i));
  return value.get_f64(i);
}

}  // namespace

void JsonChoice::declare(CommandLine& line) {
  line.group("Output");
  line.output(file, "--json", "F", "result as JSON; - is standard output");
}

Status JsonChoice::write(const ordered_json& value) const {
  if (!file.given()) return {};
  // On a terminal DEL and other control characters beyond ASCII, too, are to be seen only.
  return file.write(value.dump(2, ' ', only_json(), ordered_json::error_handler_t::replace) + "\n");
}

std::string bytes_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes);
  int unit = -1;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string ms_text(double ms) {
  if (ms >= 10000) return fmt::format("{:.1f} s", ms / 1000);
  if (ms >= 100) return fmt::format("{:.0f} ms", ms);
  if (ms >= 1) return fmt::format("{:.2f} ms", ms);
  return fmt::format("{:.1f} us", ms * 1000);
}

std::string count_text(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

ValueSummary summarize(const Literal& value) {
  ValueSummary result;
  if (!value.shape().is_array()) return result;
  double sum = 0;
  for (int64_t i = 0; i < value.elems(); ++i) {
    const double x = size_of(value, i);
    if (std::isnan(x)) {
      ++result.nan;
    } else if (std::isinf(x)) {
      ++result.infinite;
    } else {
      result.min = result.finite == 0 ? x : std::min(result.min, x);
      result.max = result.finite == 0 ? x : std::max(result.max, x);
      sum += x;
      ++result.finite;
    }
  }
  if (result.finite > 0) result.mean = sum / static_cast<double>(result.finite);
  return result;
}

std::string value_text(const Literal& value) {
  if (!value.shape().is_array()) return "token";
  if (value.elems() <= kFew) return tensor::to_string(value);
  const ValueSummary s = summarize(value);
  std::string first = tensor::to_string(first_elements(value, 6));
  if (first.ends_with('}')) first = first.substr(0, first.size() - 1) + ", ...}";
  std::string text = fmt::format("min {:.6g}, max {:.6g}, mean {:.6g}", s.min, s.max, s.mean);
  if (s.nan > 0) text += fmt::format(", {} nan", s.nan);
  if (s.infinite > 0) text += fmt::format(", {} infinite", s.infinite);
  return text + ", " + first;
}

ordered_json value_json(const Literal& value) {
  const ValueSummary s = summarize(value);
  ordered_json json;
  json["type"] = std::string(tensor::type_name(value.type()));
  json["shape"] = value.shape().is_array() ? value.shape().extents() : std::vector<int64_t>();
  json["min"] = s.min;
  json["max"] = s.max;
  json["mean"] = s.mean;
  json["nan"] = s.nan;
  json["infinite"] = s.infinite;
  return json;
}

std::string where_text(const heddle_program_info& info) {
  if (std::string_view(info.device) != "cpu") return info.device;
  return fmt::format("{} ({}), {} thread{}, {}, {}", info.device, info.isa, info.threads,
                     info.threads == 1 ? "" : "s", info.level, info.precision);
}

std::string to_string(const Head& head) {
  std::string text = fmt::format("{} on {}", head.model, head.where);
  std::string bound;
  for (const auto& [name, extent] : head.unbound)
    bound += fmt::format("{}{}={}", bound.empty() ? "" : ", ", name, extent);
  if (!bound.empty()) text += fmt::format("; {} (not given)", bound);
  if (head.random) text += fmt::format("; random inputs, seed {}", head.seed);
  return text;
}

ordered_json to_json(const Unbound& unbound) {
  ordered_json json = ordered_json::object();
  for (const auto& [name, extent] : unbound) json[name] = extent;
  return json;
}

nlohmann::ordered_json json_head(const std::string& model, const heddle_program_info& info) {
  return {{"schema", 1},
          {"model", model},
          {"device", info.device},
          {"isa", info.isa},
          {"threads", info.threads},
          {"level", info.level},
          {"precision", info.precision},
          {"cache", info.cache_warm ? "warm" : "cold"}};
}

std::vector<std::string> notes_of(const heddle_program* program) {
  std::vector<std::string> notes;
  for (int64_t i = 0; i < info_of(program).notes; ++i)
    notes.emplace_back(heddle_program_note(program, i));
  return notes;
}

void print_notes(const heddle_program* program) { print_notes(notes_of(program)); }

void print_notes(const std::vector<std::string>& notes) {
  if (verbosity() == Verbosity::quiet) return;
  for (const std::string& note : notes) fmt::print("note: {}\n", note);
}

int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

}  // namespace heddle::tools
