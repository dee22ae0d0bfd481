// The JSON form of a target. One list of fields drives reading and writing, so that they agree.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "target/shipped.h"
#include "target/target.h"

namespace heddle::target {
namespace {

using Json = nlohmann::ordered_json;

// Bounds keep derived quantities (loop counts, buffer sizes) reasonable.
constexpr double kMaxCount = 1e6;
constexpr double kMaxBytes = 1e15;
constexpr double kMaxRate = 1e12;

class Reader {
 public:
  explicit Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  void field(const char* key, int& value) { number(key, value, kMaxCount); }
  void field(const char* key, int64_t& value) { number(key, value, kMaxBytes); }
  void field(const char* key, double& value) {
    if (const Json* item = find(key)) {
      if (!item->is_number() || !(item->get<double>() >= 0 && item->get<double>() <= kMaxRate)) {
        return fail(key, *item, "a number of 0 to 1e12");
      }
      value = item->get<double>();
    }
  }
  void field(const char* key, std::string& value) {
    if (const Json* item = find(key)) {
      if (!item->is_string()) return fail(key, *item, "a string");
      value = item->get<std::string>();
    }
  }
  void field(const char* key, DeviceKind& value) {
    std::string text = "cpu";
    field(key, text);
    if (text != "cpu" && text != "gpu") return fail(key, json_[key], "\"cpu\" or \"gpu\"");
    value = text == "gpu" ? DeviceKind::gpu : DeviceKind::cpu;
  }
  void field(const char* key, std::vector<std::string>& value) {
    const Json* item = find(key);
    if (!item) return;
    if (!item->is_array()) return fail(key, *item, "a list of strings");
    for (const Json& element : *item) {
      if (!element.is_string()) return fail(key, element, "a string");
      value.push_back(element.get<std::string>());
    }
    std::sort(value.begin(), value.end());
    value.erase(std::unique(value.begin(), value.end()), value.end());
  }
  void field(const char* key, std::map<std::string, double>& value) {
    const Json* item = find(key);
    if (!item) return;
    if (!item->is_object()) return fail(key, *item, "an object of numbers");
    Reader inner(*item, where_ + "." + key);
    for (const auto& [name, unused] : item->items()) inner.field(name.c_str(), value[name]);
    take(inner);
  }
  void field(const char* key, std::vector<Cache>& value) {
    const Json* item = find(key);
    if (!item) return;
    if (!item->is_array() || item->size() > 8) return fail(key, *item, "a list of at most 8");
    for (const Json& element : *item) {
      if (!element.is_object()) return fail(key, element, "an object");
      Reader inner(element, where_ + "." + key);
      Cache& cache = value.emplace_back();
      inner.field("bytes", cache.bytes);
      inner.field("shared_by_cores", cache.shared_by_cores);
      inner.field("bandwidth_bytes_per_ns", cache.bandwidth_bytes_per_ns);
      inner.check_unknown();
      take(inner);
    }
  }
  void check_unknown() {
    for (const auto& [key, value] : json_.items()) {
      if (!seen_.contains(key)) return fail(key.c_str(), value, "a field that targets have");
    }
  }
  const std::string& error() const { return error_; }

 private:
  const Json* find(const char* key) {
    seen_.insert(key);
    auto item = json_.find(key);
    return item == json_.end() ? nullptr : &*item;
  }
  template <typename T>
  void number(const char* key, T& value, double max) {
    if (const Json* item = find(key)) {
      if (!item->is_number_integer() || !(item->get<double>() >= 0 && item->get<double>() <= max)) {
        return fail(key, *item, "a whole number, not negative and not huge");
      }
      value = item->get<T>();
    }
  }
  void fail(const char* key, const Json& got, const char* wanted) {
    if (!error_.empty()) return;
    std::string text = got.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80);
    error_ = fmt::format("{}.{}: got {}, wanted {}", where_, key, text, wanted);
  }
  void take(const Reader& inner) {
    if (error_.empty()) error_ = inner.error_;
  }

  const Json& json_;
  std::string where_, error_;
  std::set<std::string> seen_;
};

class Writer {
 public:
  template <typename T>
  void field(const char* key, const T& value) {
    json[key] = value;
  }
  void field(const char* key, const DeviceKind& value) {
    json[key] = value == DeviceKind::gpu ? "gpu" : "cpu";
  }
  void field(const char* key, const std::vector<Cache>& value) {
    json[key] = Json::array();
    for (const Cache& cache : value) {
      json[key].push_back({{"bytes", cache.bytes},
                           {"shared_by_cores", cache.shared_by_cores},
                           {"bandwidth_bytes_per_ns", cache.bandwidth_bytes_per_ns}});
    }
  }
  Json json;
};

template <typename Visitor, typename T>
void visit_fields(Visitor& visitor, T& t) {
  visitor.field("name", t.name);
  visitor.field("kind", t.kind);
  visitor.field("llvm_triple", t.llvm_triple);
  visitor.field("llvm_cpu", t.llvm_cpu);
  visitor.field("features", t.features);
  visitor.field("simd_bits", t.simd_bits);
  visitor.field("vector_registers", t.vector_registers);
  visitor.field("cores", t.cores);
  visitor.field("clock_ghz", t.clock_ghz);
  visitor.field("fma_per_cycle", t.fma_per_cycle);
  visitor.field("caches", t.caches);
  visitor.field("memory_bandwidth_bytes_per_ns", t.memory_bandwidth_bytes_per_ns);
  visitor.field("memory_bandwidth_all_bytes_per_ns", t.memory_bandwidth_all_bytes_per_ns);
  visitor.field("memory_read_bytes_per_ns", t.memory_read_bytes_per_ns);
  visitor.field("memory_bytes", t.memory_bytes);
  visitor.field("link_bytes_per_ns", t.link_bytes_per_ns);
  visitor.field("link_latency_ns", t.link_latency_ns);
  visitor.field("launch_ns", t.launch_ns);
  visitor.field("serial_command_ns", t.serial_command_ns);
  visitor.field("mac_rate", t.mac_rate);
  visitor.field("cycles", t.cycles);
  visitor.field("multiprocessors", t.multiprocessors);
  visitor.field("threads_per_multiprocessor", t.threads_per_multiprocessor);
  visitor.field("registers_per_multiprocessor", t.registers_per_multiprocessor);
  visitor.field("shared_bytes_per_block", t.shared_bytes_per_block);
  visitor.field("shared_bytes_per_multiprocessor", t.shared_bytes_per_multiprocessor);
  visitor.field("warp_size", t.warp_size);
}

bool power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

// Values that code generation and cost models divide by or index with must be valid.
Status check(const Target& t) {
  auto bad = [&](const char* key, auto got, const char* wanted) {
    return user_error("target {}: {}: got {}, wanted {}", t.name, key, got, wanted);
  };
  if (t.name.empty()) return bad("name", "nothing", "a name");
  if (!power_of_two(t.simd_bits) || t.simd_bits < 64 || t.simd_bits > 2048) {
    return bad("simd_bits", t.simd_bits, "a power of two of 64 to 2048");
  }
  if (t.vector_registers < 1) return bad("vector_registers", t.vector_registers, "at least 1");
  if (t.cores < 1) return bad("cores", t.cores, "at least 1");
  if (!(t.clock_ghz > 0)) return bad("clock_ghz", t.clock_ghz, "more than 0");
  if (t.fma_per_cycle < 1) return bad("fma_per_cycle", t.fma_per_cycle, "at least 1");
  if (!power_of_two(t.warp_size)) return bad("warp_size", t.warp_size, "a power of two");
  if (t.kind == DeviceKind::gpu && t.multiprocessors < 1) {
    return bad("multiprocessors", t.multiprocessors, "at least 1 (kind is gpu)");
  }
  for (const std::string& feature : t.features) {
    bool plain =
        !feature.empty() && std::all_of(feature.begin(), feature.end(), [](unsigned char c) {
          return std::isalnum(c) || c == '.' || c == '-' || c == '_';
        });
    if (!plain || feature[0] == '-') {
      return bad("features", feature.substr(0, 40), "LLVM feature names without sign, as avx2");
    }
  }
  for (const Cache& cache : t.caches) {
    if (cache.bytes < 1 || cache.shared_by_cores < 1) {
      return bad("caches", cache.bytes, "bytes and shared_by_cores of at least 1");
    }
  }
  return {};
}

}  // namespace

Result<Target> parse_target(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return user_error("target: not JSON ({} bytes)", text.size());
  if (!json.is_object())
    return user_error("target: got JSON {}, wanted an object", json.type_name());
  Target target;
  Reader reader(json, "target");
  visit_fields(reader, target);
  reader.check_unknown();
  if (!reader.error().empty()) return user_error("{}", reader.error());
  HEDDLE_RETURN_IF_ERROR(check(target));
  return target;
}

std::string to_string(const Target& target) {
  Writer writer;
  visit_fields(writer, target);
  return writer.json.dump(2, ' ', false, Json::error_handler_t::replace);
}

namespace {

// Reads a file written by `heddle calibrate`, or by hand.
Result<Target> read_target(const std::string& path) {
  constexpr std::streamoff kMostBytes = 1 << 20;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) return user_error("target {}: cannot be read", path);
  if (size > kMostBytes)
    return user_error("target {}: got {} bytes, wanted a target file of at most {}", path, size,
                      kMostBytes);
  std::string text(static_cast<size_t>(size), '\0');
  file.seekg(0);
  file.read(text.data(), size);
  if (!file) return user_error("target {}: cannot be read", path);
  Result<Target> target = parse_target(text);
  if (!target) return user_error("{}: {}", path, target.error().message);
  return target;
}

}  // namespace

Result<Target> find_target(const std::string& name) {
  if (name == "host") {
    const char* isa = std::getenv("HEDDLE_ISA");
    std::string_view wanted = isa ? isa : "";
    if (!wanted.empty() && wanted != "portable" && wanted != "avx2" && wanted != "avx512") {
      return user_error("HEDDLE_ISA: got {}, wanted portable, avx2 or avx512 (or unset it)",
                        wanted);
    }
    return host_target();
  }
  for (const ShippedText& shipped : shipped_texts()) {
    if (shipped.name == name) return parse_target(shipped.json);
  }
  if (name.ends_with(".json") || name.find('/') != std::string::npos) return read_target(name);
  return user_error("target {}: not known, wanted host, a file F.json or one of {}", name,
                    fmt::join(shipped_targets(), ", "));
}

}  // namespace heddle::target
