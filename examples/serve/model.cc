#include <algorithm>
#include <fstream>

#include "serve.h"

namespace serve {

static constexpr Type kTypes[] = {
    {HEDDLE_PRED, "BOOL", 1},  {HEDDLE_S8, "INT8", 1},    {HEDDLE_S16, "INT16", 2},
    {HEDDLE_S32, "INT32", 4},  {HEDDLE_S64, "INT64", 8},  {HEDDLE_U8, "UINT8", 1},
    {HEDDLE_U16, "UINT16", 2}, {HEDDLE_U32, "UINT32", 4}, {HEDDLE_U64, "UINT64", 8},
    {HEDDLE_F16, "FP16", 2},   {HEDDLE_BF16, "BF16", 2},  {HEDDLE_F32, "FP32", 4},
    {HEDDLE_F64, "FP64", 8},
};

// An error of heddle as a refusal.
static void must(heddle_status* status) {
  if (status == nullptr) return;
  const int kind = heddle_status_kind(status), code = heddle_status_code(status);
  const bool is_busy = kind == HEDDLE_CANCELLED || code == HEDDLE_CODE_MEMORY;
  const std::string reason = heddle_status_message(status);
  heddle_status_free(status);
  throw Refusal(kind == HEDDLE_USER_ERROR ? 400 : is_busy ? 503 : 500, "{}", reason);
}

static std::vector<heddle_dim> dims_of(const std::map<std::string, int64_t>& from) {
  std::vector<heddle_dim> result;
  for (const auto& [name, size] : from) result.push_back({name.c_str(), size});
  return result;
}

static ModelHandle open(const std::filesystem::path& file, heddle_open_options options,
                        const std::map<std::string, int64_t>& dims,
                        const std::map<std::string, int64_t>& bounds) {
  const std::vector<heddle_dim> fixed = dims_of(dims), bounded = dims_of(bounds);
  options.dims = fixed.data(), options.dim_count = fixed.size();
  options.bounds = bounded.data(), options.bound_count = bounded.size();
  heddle_model* model = nullptr;
  must(heddle_model_open(file.c_str(), &options, &model));
  return ModelHandle(model);
}

size_t Port::axis_of(const std::string& dim) const {
  const auto is_it = [&](const Dim& one) { return one.most > 0 && one.name == dim; };
  return static_cast<size_t>(std::find_if(dims.begin(), dims.end(), is_it) - dims.begin());
}

Tensor zeros(const Port& port, std::vector<int64_t> dims) {
  int64_t bytes = port.type->bytes;
  for (const int64_t extent : dims) bytes *= extent;
  return {std::move(dims), std::vector<char>(static_cast<size_t>(bytes))};
}

void Config::read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) return;
  static const std::set<std::string> keys{
      "batch_dimension", "padded_dimension", "pad",      "bounds",      "dims",
      "most_rows",       "most_elements",    "delay_ms", "most_padding"};
  try {
    const json from = json::parse(stream);
    for (const auto& [key, value] : from.items())
      if (!keys.contains(key)) throw Refusal(400, "config: unknown key '{}'", key);
    batch = from.value("batch_dimension", batch);
    padded = from.value("padded_dimension", padded);
    pad = from.value("pad", pad);
    bounds = from.value("bounds", bounds);
    dims = from.value("dims", dims);
    most_rows = std::clamp<int64_t>(from.value("most_rows", most_rows), 1, 1024);
    most_elements = from.value("most_elements", most_elements);
    delay_ms = std::clamp(from.value("delay_ms", delay_ms), 0.0, 10000.0);
    most_padding = from.value("most_padding", most_padding);
  } catch (const json::exception& e) {
    throw Refusal(400, "config: {}", e.what());
  }
}

Model::Model(std::string called, const std::filesystem::path& file, Config wanted,
             const Limits& limit, std::atomic<bool>& stop)
    : name(std::move(called)), config(std::move(wanted)), limits(limit) {
  heddle_open_options options{sizeof options};
  try {
    find_shapes(open(file, options, config.dims, {}).get());
  } catch (const Refusal&) {  // a shape depends on a value; other errors come again
    options.late = is_late_ = true;
    find_shapes(open(file, options, config.dims, {}).get());
  }
  for (const int64_t rows : sizes_) compile(file, rows, stop);
  check_batch();
}

// Which dimensions are dynamic, and which programs serve all their extents.
void Model::find_shapes(heddle_model* model) {
  heddle_model_info info{sizeof info};
  heddle_model_get_info(model, &info);
  is_program_ = info.is_program != 0;
  for (int64_t i = 0; heddle_model_unbound(model, i).name != nullptr; ++i)
    free_.insert(heddle_model_unbound(model, i).name);
  for (int64_t i = 0; i < info.inputs; ++i)
    for (const Dim& dim : port_of(model, true, i).dims)
      if (dim.most > 0) free_.insert(dim.name);
  std::set<std::string> others = free_;
  if (!config.batch.empty() && others.erase(config.batch) == 0)
    throw Refusal(400, "batch_dimension: it has no dynamic dimension '{}'", config.batch);
  for (const auto& [dim, bound] : config.bounds)
    if (others.erase(dim) == 0 && dim != config.batch)
      throw Refusal(400, "bounds: it has no dynamic dimension '{}'", dim);
  if (!is_program_ && !others.empty()) is_late_ = true;
  if (is_late_ || config.batch.empty() || is_program_) return;
  // One program for all numbers of rows; but with another bounded dimension the rows of several
  // sequences are one product only where their number is fixed (docs/dynamic-shapes.md, "Missing").
  if (free_.size() == 1) config.bounds[config.batch] = std::max<int64_t>(4, config.most_rows);
  if (free_.size() == 1) return;
  sizes_.clear();
  for (int64_t rows = 1; rows < config.most_rows; rows *= 4) sizes_.push_back(rows);
  sizes_.push_back(config.most_rows);
}

Port Model::port_of(heddle_model* model, bool input, int64_t number) const {
  heddle_port port{sizeof port};
  (input ? heddle_model_input : heddle_model_output)(model, number, &port);
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const Type& one) { return one.type == port.type; });
  if (type == std::end(kTypes) || port.is_text)
    throw Refusal(400, "{} is of a type that is not served", port.name);
  Port result{port.name, type, {}};
  for (int64_t d = 0; d < port.rank; ++d) {
    heddle_port_dim dim{sizeof dim};
    must((input ? heddle_model_input_dim : heddle_model_output_dim)(model, number, d, &dim));
    const std::string called = *dim.name ? dim.name : fmt::format("{}[{}]", port.name, d);
    const int64_t most = called == config.batch ? config.most_rows : INT64_MAX;
    const bool is_open = is_late_ && (!input || free_.contains(called));
    result.dims.push_back({dim.extent, called,
                           dim.least < dim.most ? dim.most
                           : is_open            ? most
                                                : 0});
  }
  return result;
}

// A program, for a fixed number of rows or (0) for any, and its first runs: at all extents for
// which heddle compiles a part of its own, powers of 4 and the bound.
void Model::compile(const std::filesystem::path& file, int64_t rows, std::atomic<bool>& stop) {
  heddle_open_options options{sizeof options};
  options.late = is_late_;
  std::map<std::string, int64_t> dims = config.dims, bounds = config.bounds;
  if (rows > 0) dims[config.batch] = rows, bounds.erase(config.batch);
  if (is_program_) dims.clear();
  if (is_program_ || is_late_) bounds.clear();
  const ModelHandle model = open(file, options, dims, bounds);
  heddle_model_info info{sizeof info};
  heddle_model_get_info(model.get(), &info);
  inputs.clear(), outputs.clear();
  for (int64_t i = 0; i < info.inputs; ++i) inputs.push_back(port_of(model.get(), true, i));
  for (int64_t o = 0; o < info.outputs; ++o) outputs.push_back(port_of(model.get(), false, o));
  for (std::vector<Port>* ports : {&inputs, &outputs})
    for (Port& port : *ports)
      if (rows > 0) {
        if (port.dims.empty() || port.dims[0].extent != rows)
          throw Refusal(400, "batch_dimension: '{}' does not begin with it", port.name);
        port.dims[0] = {rows, config.batch, config.most_rows};
      }
  heddle_compile_options how{sizeof how};
  how.threads = limits.threads;
  how.progress_context = &stop;
  how.progress = [](const heddle_compile_progress*, void* context) {
    return static_cast<int32_t>(static_cast<std::atomic<bool>*>(context)->load());
  };
  heddle_program* program = nullptr;
  must(heddle_compile(model.get(), &how, &program));
  variants_.push_back({rows, ProgramHandle(program), {}});
  variants_.back().contexts.resize(static_cast<size_t>(limits.runners));
  int64_t top = 1;
  for (const Port& port : inputs)
    for (const Dim& dim : port.dims)
      if (!is_late_ && (rows == 0 || dim.name != config.batch)) top = std::max(top, dim.most);
  for (int64_t extent = 1; !stop; extent = std::min(extent * 4, top)) {
    std::vector<Tensor> in;
    for (const Port& port : inputs) {
      std::vector<int64_t> at;
      for (const Dim& dim : port.dims)
        at.push_back(dim.most == 0 || is_late_ || (rows > 0 && dim.name == config.batch)
                         ? dim.extent
                         : std::min(extent, dim.most));
      in.push_back(zeros(port, at));
    }
    try {
      run(context(0, rows).get(), in);
    } catch (const Refusal& refusal) {  // 400: zeros are no input for it
      if (refusal.status != 400) throw;
    }
    if (extent >= top) return;
  }
  throw Refusal(503, "the server stops");
}

// What makes joining or padding requests impossible.
void Model::check_batch() {
  if (!config.padded.empty() &&
      (config.batch.empty() || is_late_ || !free_.contains(config.padded)))
    throw Refusal(400, "padded_dimension: it needs a batch_dimension, and bounds of its own");
  for (const Port& port : inputs) {
    Tensor pad;
    if (!config.padded.empty() && port.axis_of(config.padded) < port.dims.size()) {
      if (!config.pad.contains(port.name))
        throw Refusal(400, "pad: there is no value for input '{}'", port.name);
      append(config.pad.at(port.name), *port.type, &pad);
    }
    pads.emplace_back(pad.data.begin(), pad.data.end());
  }
  for (const std::vector<Port>* ports : {&inputs, &outputs})
    for (const Port& port : *ports)
      if (!config.batch.empty() && !(is_late_ && ports == &outputs) &&
          port.axis_of(config.batch) != 0)
        throw Refusal(400, "batch_dimension: '{}' does not begin with it", port.name);
  if (!config.batch.empty()) config.most_rows = std::min(config.most_rows, inputs[0].dims[0].most);
}

int64_t Model::rows_at_least(int64_t rows) const {
  const auto size = std::lower_bound(sizes_.begin(), sizes_.end(), rows);
  return size == sizes_.end() ? rows : *size;
}

int64_t Model::rows_at_most(int64_t rows) const {
  const auto above = std::upper_bound(sizes_.begin(), sizes_.end(), rows);
  return above == sizes_.begin() || sizes_[0] == 0 ? rows : *(above - 1);
}

ContextHandle& Model::context(size_t runner, int64_t rows) {
  size_t v = 0;
  while (v + 1 < variants_.size() && variants_[v].rows != rows) ++v;
  ContextHandle& context = variants_[v].contexts[runner];
  heddle_context* made = nullptr;
  if (!context) must(heddle_context_create(variants_[v].program.get(), &made));
  if (made != nullptr) context.reset(made);
  return context;
}

std::vector<Tensor> Model::run(heddle_context* context, const std::vector<Tensor>& in) const {
  std::map<std::string, std::pair<int64_t, int64_t>> extents;  // and the most
  for (size_t i = 0; i < in.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    const std::vector<int64_t>& dims = in[i].dims;
    for (size_t d = 0; d < dims.size(); ++d)
      if (const Dim& dim = inputs[i].dims[d]; dim.most > 0) extents[dim.name] = {dims[d], dim.most};
    if (is_late_) must(heddle_context_set_input_shape(context, number, dims.data(), ssize(dims)));
    must(heddle_context_bind_input(context, number, in[i].data.data()));
  }
  for (const auto& [dim, extent] : extents)
    if (!is_late_ && (sizes_[0] == 0 || dim != config.batch))
      must(heddle_context_set_dim(context, dim.c_str(), extent.first));
  if (is_late_) must(heddle_context_prepare(context));
  std::vector<Tensor> out(outputs.size());
  for (size_t o = 0; o < out.size(); ++o) {
    std::vector<int64_t>& dims = out[o].dims;
    heddle_port port{sizeof port};
    heddle_context_output(context, static_cast<int64_t>(o), &port);
    if (is_late_) dims.assign(port.dims, port.dims + port.rank);
    for (const Dim& dim : outputs[o].dims)
      if (!is_late_)
        dims.push_back(dim.most == 0
                           ? dim.extent
                           : extents.at(dim.name).first * dim.most / extents.at(dim.name).second);
    int64_t bytes = outputs[o].type->bytes;
    for (const int64_t extent : dims)
      if (__builtin_mul_overflow(bytes, extent, &bytes) ||
          bytes > static_cast<int64_t>(limits.body_bytes))
        throw Refusal(413, "output '{}' would have more than {} bytes", outputs[o].name,
                      limits.body_bytes);
    out[o] = zeros(outputs[o], dims);
    must(heddle_context_bind_output(context, static_cast<int64_t>(o), out[o].data.data()));
  }
  must(heddle_context_run(context));
  return out;
}

}  // namespace serve
