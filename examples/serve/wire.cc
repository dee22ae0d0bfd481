#include <charconv>
#include <cmath>
#include <limits>

#include "serve.h"

namespace serve {

static constexpr int kMostDepth = 24;  // of brackets: the request's own, and a tensor's dimensions

// Calls `function` with a value of the C++ type.
template <class F>
static void with_type(const Type& type, F function) {
  switch (type.type) {
    case HEDDLE_PRED:
      return function(bool{});
    case HEDDLE_S8:
      return function(int8_t{});
    case HEDDLE_S16:
      return function(int16_t{});
    case HEDDLE_S32:
      return function(int32_t{});
    case HEDDLE_S64:
      return function(int64_t{});
    case HEDDLE_U8:
      return function(uint8_t{});
    case HEDDLE_U16:
      return function(uint16_t{});
    case HEDDLE_U32:
      return function(uint32_t{});
    case HEDDLE_U64:
      return function(uint64_t{});
    case HEDDLE_F32:
      return function(float{});
    case HEDDLE_F64:
      return function(double{});
    default:
      throw Refusal(400, "{} has no form in JSON; use binary data", type.name);
  }
}

template <class T>
static bool read_number(const json& value, T* to) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) return false;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number() || std::abs(value.get<double>()) > Limits::max()) return false;
  } else if (!value.is_number_integer() ||
             (value.is_number_unsigned()
                  ? value.get<uint64_t>() > static_cast<uint64_t>(Limits::max())
                  : value.get<int64_t>() < static_cast<int64_t>(Limits::min()))) {
    return false;
  }
  *to = value.get<T>();
  return true;
}

template <class T>
static void append_all(const json& value, const Type& type, Tensor* to) {
  if (value.is_array()) {
    for (const json& element : value) append_all<T>(element, type, to);
    return;
  }
  T number;
  if (!read_number(value, &number))
    throw Refusal(400, "got {} in the data, wanted {}", text(value).substr(0, 40), type.name);
  const char* bytes = reinterpret_cast<const char*>(&number);
  to->data.insert(to->data.end(), bytes, bytes + sizeof number);
}

void append(const json& numbers, const Type& type, Tensor* to) {
  with_type(type, [&](auto zero) { append_all<decltype(zero)>(numbers, type, to); });
}

std::string text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// The number of the port that an element of "inputs" or "outputs" names.
static size_t port_named(const std::vector<Port>& ports, const json& one) {
  const auto name = one.at("name").get<std::string>();
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i].name == name) return i;
  throw Refusal(400, "the model has no '{}'", name.substr(0, 80));
}

static json parameters_of(const json& object) { return object.value("parameters", json::object()); }

static std::vector<int64_t> read_shape(const json& shape, const Port& port, Request* request) {
  const auto wrong = [&](const std::string& wanted) {
    return Refusal(400, "input '{}': its shape is {}, wanted {}", port.name,
                   text(shape).substr(0, 60), wanted);
  };
  if (!shape.is_array() || shape.size() != port.dims.size())
    throw wrong(fmt::format("{} dimensions", port.dims.size()));
  std::vector<int64_t> dims;
  for (const json& extent : shape) {
    const Dim& dim = port.dims[dims.size()];
    dims.emplace_back();
    const bool is_number = read_number(extent, &dims.back());
    if (!is_number ||
        (dim.most == 0 ? dims.back() != dim.extent : dims.back() < 1 || dims.back() > dim.most))
      throw wrong(dim.most == 0          ? fmt::format("{}", dim.extent)
                  : dim.most < INT64_MAX ? fmt::format("{} from 1 to {}", dim.name, dim.most)
                                         : fmt::format("{} of at least 1", dim.name));
    if (dim.most == 0) continue;
    const auto known = request->extents.emplace(dim.name, dims.back()).first->second;
    if (known != dims.back())
      throw wrong(fmt::format("{} {} as in another input", dim.name, known));
  }
  return dims;
}

static void read_input(const json& from, const Port& port, uint64_t most, std::string_view* binary,
                       Request* request, Tensor* to) {
  const auto wrong = [&](const std::string& reason) {
    return Refusal(400, "input '{}': {}", port.name, reason);
  };
  if (!to->dims.empty() || !to->data.empty()) throw wrong("it is there twice");
  if (from.at("datatype") != port.type->name)
    throw wrong(fmt::format("its datatype is {}, wanted {}",
                            text(from.at("datatype")).substr(0, 40), port.type->name));
  to->dims = read_shape(from.at("shape"), port, request);
  auto bytes = static_cast<uint64_t>(port.type->bytes);
  for (const int64_t extent : to->dims)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes) || bytes > most)
      throw Refusal(413, "input '{}': its shape has more than {} bytes", port.name, most);
  uint64_t size = 0;
  const json parameters = parameters_of(from);
  if (!parameters.contains("binary_data_size")) {
    to->data.reserve(bytes);
    append(from.at("data"), *port.type, to);
    size = to->data.size();
  } else if (read_number(parameters.at("binary_data_size"), &size) && size <= binary->size()) {
    to->data.assign(binary->begin(), binary->begin() + static_cast<int64_t>(size));
    binary->remove_prefix(size);
    if (port.type->type == HEDDLE_PRED)
      for (char& value : to->data) value = value != 0;
  }
  if (size != bytes) throw wrong(fmt::format("its data has {} bytes, wanted {}", size, bytes));
}

static void read_outputs(const json& from, const Model& model, Request* request) {
  const bool binary = parameters_of(from).value("binary_data_output", false);
  if (!from.contains("outputs"))
    for (size_t o = 0; o < model.outputs.size(); ++o) request->outputs.emplace_back(o, binary);
  for (const json& one : from.value("outputs", json::array())) {
    const size_t o = port_named(model.outputs, one);
    for (const auto& [other, is_binary] : request->outputs)
      if (o == other) throw Refusal(400, "output '{}' is there twice", model.outputs[o].name);
    if (parameters_of(one).contains("classification"))
      throw Refusal(400, "output '{}': classification is not served", model.outputs[o].name);
    request->outputs.emplace_back(o, parameters_of(one).value("binary_data", binary));
  }
  for (const auto& [o, is_binary] : request->outputs)
    if (!is_binary) with_type(*model.outputs[o].type, [](auto) {});
}

Request decode(const Model& model, std::string_view body, size_t json_bytes) try {
  const auto limit = [](int depth, json::parse_event_t, json&) {
    if (depth > kMostDepth) throw Refusal(400, "its JSON is more than {} levels deep", kMostDepth);
    return true;
  };
  const json from = json::parse(body.substr(0, json_bytes), limit);
  std::string_view binary = body.substr(json_bytes);
  Request request;
  request.inputs.resize(model.inputs.size());
  if (from.contains("id")) request.id = from.at("id").get<std::string>();
  for (const json& one : from.at("inputs")) {
    const size_t i = port_named(model.inputs, one);
    read_input(one, model.inputs[i], model.limits.body_bytes, &binary, &request,
               &request.inputs[i]);
  }
  for (size_t i = 0; i < model.inputs.size(); ++i)
    if (request.inputs[i].dims.size() != model.inputs[i].dims.size() ||
        request.inputs[i].data.empty())
      throw Refusal(400, "input '{}' is missing", model.inputs[i].name);
  if (!binary.empty()) throw Refusal(400, "{} bytes follow the last tensor", binary.size());
  read_outputs(from, model, &request);
  return request;
} catch (const json::exception& e) {
  throw Refusal(400, "the request's JSON: {}", e.what());
}

template <class T>
static void write_numbers(const Tensor& tensor, std::string* to) {
  const T* numbers = reinterpret_cast<const T*>(tensor.data.data());
  char buffer[40];
  for (size_t i = 0; i < tensor.data.size() / sizeof(T); ++i) {
    if (i > 0) to->push_back(',');
    if constexpr (std::is_same_v<T, bool>)
      to->append(numbers[i] ? "true" : "false");
    else if (!std::isfinite(static_cast<double>(numbers[i])))
      to->append("null");  // JSON has nothing better
    else
      to->append(buffer, std::to_chars(buffer, std::end(buffer), numbers[i]).ptr);
  }
}

std::string encode(const Model& model, const Request& request, const std::vector<Tensor>& outputs,
                   size_t* json_bytes) {
  std::string result = "{\"model_name\":" + text(model.name) + ",\"model_version\":\"1\"", binary;
  if (!request.id.is_null()) result += ",\"id\":" + text(request.id);
  result += ",\"outputs\":";
  *json_bytes = 0;
  for (const auto& [o, is_binary] : request.outputs) {
    const Port& port = model.outputs[o];
    const Tensor& tensor = outputs.at(o);
    result += fmt::format(R"({}{{"name":{},"datatype":"{}","shape":{},)",
                          result.back() == ':' ? '[' : ',', text(port.name), port.type->name,
                          text(tensor.dims));
    if (is_binary) {
      binary.append(tensor.data.data(), tensor.data.size());
      result += fmt::format(R"("parameters":{{"binary_data_size":{}}}}})", tensor.data.size());
      *json_bytes = 1;
    } else {
      result += "\"data\":[";
      with_type(*port.type, [&](auto zero) { write_numbers<decltype(zero)>(tensor, &result); });
      result += "]}";
    }
  }
  result += result.back() == ':' ? "[]}" : "]}";
  if (*json_bytes > 0) *json_bytes = result.size();
  return result + binary;
}

json metadata(const Model& model) {
  const auto ports = [](const std::vector<Port>& from) {
    json result = json::array();
    for (const Port& port : from) {
      json shape = json::array();
      for (const Dim& dim : port.dims) shape.push_back(dim.most == 0 ? dim.extent : -1);
      result.push_back({{"name", port.name}, {"datatype", port.type->name}, {"shape", shape}});
    }
    return result;
  };
  return {{"name", model.name},
          {"versions", {"1"}},
          {"platform", "heddle"},
          {"inputs", ports(model.inputs)},
          {"outputs", ports(model.outputs)}};
}

}  // namespace serve
