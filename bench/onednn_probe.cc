// oneDNN as a contestant: runs the products and convolutions that bench/onednn.py writes down for
// it, each a primitive with weights in the format that oneDNN prefers and its epilogue as post-ops.
//
//   onednn_probe STEPS VALUES.npz        threads: OMP_NUM_THREADS
//
// STEPS is text, one line per step; VALUES has inputs, weights (as ONNX lays them out) and vectors:
//   product OUT X W BIAS|- ACTIVATION|-
//   convolution OUT X W BIAS|- ACTIVATION|- STRIDE PAD GROUPS
//   output NAME
// Inputs and outputs of the model are row-major, images NCHW: reordering them to the format of the
// first convolution and back is done every time, and counts. Weights are reordered once.
//
// Answers "ready NAME" or "error TEXT", then for every line with a count runs once unmeasured and
// then that often, and answers with one line of JSON, the wall and the process's CPU nanoseconds of
// every run; for a line with a path, writes the outputs there.
#include <sys/mman.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "tensor/npz.h"

namespace {

using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;
constexpr memory::data_type kF32 = memory::data_type::f32;

int64_t now_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

// As heddle_probe allocates, and never freed.
void* allocate(size_t bytes) {
  if (bytes == 0) bytes = 64;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::runtime_error("no memory");
  madvise(data, bytes, MADV_HUGEPAGE);
  std::memset(data, 0, bytes);
  return data;
}

Tag row_major(size_t rank) {
  const std::map<size_t, Tag> tags = {{1, Tag::a}, {2, Tag::ab}, {4, Tag::abcd}, {5, Tag::abcde}};
  if (!tags.count(rank)) throw std::runtime_error("a value of rank " + std::to_string(rank));
  return tags.at(rank);
}

memory::desc plain(const Dims& dims) { return {dims, kF32, row_major(dims.size())}; }
memory::desc any(const Dims& dims) { return {dims, kF32, Tag::any}; }

dnnl::primitive_attr attributes(const std::string& activation) {
  const std::map<std::string, dnnl::algorithm> known = {
      {"Relu", dnnl::algorithm::eltwise_relu},
      {"Gelu", dnnl::algorithm::eltwise_gelu_erf},
      {"HardSwish", dnnl::algorithm::eltwise_hardswish},
      {"Softplus", dnnl::algorithm::eltwise_soft_relu}};
  dnnl::primitive_attr attr;
  if (activation == "-") return attr;
  dnnl::post_ops post_ops;
  post_ops.append_eltwise(1, known.at(activation), 0, 0);
  attr.set_post_ops(post_ops);
  return attr;
}

struct Command {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
};

class Graph {
 public:
  explicit Graph(const heddle::tensor::NamedLiterals& values) {
    for (const auto& [name, value] : values) {
      const Dims dims = value.shape().extents();
      memory held = make(plain(dims));
      std::memcpy(held.get_data_handle(), value.data(), static_cast<size_t>(value.bytes()));
      values_.emplace(name, held);
    }
  }

  void add(const std::string& line) {
    std::istringstream words(line);
    std::string kind, out, x, w, bias, activation;
    words >> kind >> out;
    if (kind == "output") return add_output(out);
    words >> x >> w >> bias >> activation;
    if (kind == "product") return add_product(out, x, w, bias, activation);
    if (kind != "convolution") throw std::runtime_error("no step is called " + kind);
    int64_t stride = 0, pad = 0, groups = 0;
    words >> stride >> pad >> groups;
    add_convolution(out, x, w, bias, activation, stride, pad, groups);
  }

  void run() {
    for (Command& command : commands_) command.primitive.execute(stream_, command.arguments);
    stream_.wait();
  }

  heddle::tensor::NamedLiterals outputs() const {
    heddle::tensor::NamedLiterals result;
    for (const std::string& name : outputs_) {
      const memory& value = values_.at(name);
      const Dims dims = value.get_desc().dims();
      heddle::tensor::Literal literal(
          heddle::tensor::Shape::array(heddle::tensor::Type::f32, dims));
      std::memcpy(literal.mutable_data(), value.get_data_handle(),
                  static_cast<size_t>(literal.bytes()));
      result.emplace_back(name, literal);
    }
    return result;
  }

 private:
  memory make(const memory::desc& desc) { return memory(desc, engine_, allocate(desc.get_size())); }

  // `value` as `wanted` wants it: by a command, or at once.
  memory turned(const memory& value, const memory::desc& wanted, bool once) {
    if (value.get_desc() == wanted) return value;
    memory result = make(wanted);
    dnnl::reorder reorder(value, result);
    if (once) {
      reorder.execute(stream_, {{DNNL_ARG_FROM, value}, {DNNL_ARG_TO, result}});
      stream_.wait();
    } else {
      commands_.push_back({reorder, {{DNNL_ARG_FROM, value}, {DNNL_ARG_TO, result}}});
    }
    return result;
  }

  void add_output(const std::string& name) {
    const memory value = values_.at(name);
    values_.insert_or_assign(name, turned(value, plain(value.get_desc().dims()), false));
    outputs_.push_back(name);
  }

  template <typename Described>
  void add_command(const std::string& out, const Described& described, const memory& x,
                   const memory& w, const memory* bias) {
    memory result = make(described.dst_desc());
    Command command{dnnl::primitive(described),
                    {{DNNL_ARG_SRC, turned(x, described.src_desc(), false)},
                     {DNNL_ARG_WEIGHTS, turned(w, described.weights_desc(), true)},
                     {DNNL_ARG_DST, result}}};
    if (bias != nullptr) command.arguments.emplace(DNNL_ARG_BIAS, *bias);
    commands_.push_back(command);
    values_.insert_or_assign(out, result);
  }

  void add_product(const std::string& out, const std::string& x_name, const std::string& w_name,
                   const std::string& bias_name, const std::string& activation) {
    const memory x = values_.at(x_name), w = values_.at(w_name);
    const int64_t m = x.get_desc().dims()[0], n = w.get_desc().dims()[1];
    memory bias;
    if (bias_name != "-") bias = memory(plain({1, n}), engine_, at(bias_name));
    const auto described =
        bias_name == "-" ? dnnl::matmul::desc(x.get_desc(), any(w.get_desc().dims()), plain({m, n}))
                         : dnnl::matmul::desc(x.get_desc(), any(w.get_desc().dims()),
                                              bias.get_desc(), plain({m, n}));
    add_command(out, dnnl::matmul::primitive_desc(described, attributes(activation), engine_), x, w,
                bias_name == "-" ? nullptr : &bias);
  }

  void add_convolution(const std::string& out, const std::string& x_name, const std::string& w_name,
                       const std::string& bias_name, const std::string& activation, int64_t stride,
                       int64_t pad, int64_t groups) {
    const memory x = values_.at(x_name);
    const Dims from = x.get_desc().dims();  // [N,C,H,W]
    Dims window = values_.at(w_name).get_desc().dims();
    const Dims to = {from[0], window[0], (from[2] + 2 * pad - window[2]) / stride + 1,
                     (from[3] + 2 * pad - window[3]) / stride + 1};
    if (groups > 1) window = {groups, window[0] / groups, window[1], window[2], window[3]};
    const memory w(plain(window), engine_, at(w_name));
    const memory bias =
        bias_name == "-" ? memory() : memory(plain({to[1]}), engine_, at(bias_name));
    const auto forward = dnnl::prop_kind::forward_inference;
    const auto direct = dnnl::algorithm::convolution_direct;
    const Dims strides = {stride, stride}, pads = {pad, pad};
    const auto described =
        bias_name == "-"
            ? dnnl::convolution_forward::desc(forward, direct, any(from), any(window), any(to),
                                              strides, pads, pads)
            : dnnl::convolution_forward::desc(forward, direct, any(from), any(window),
                                              bias.get_desc(), any(to), strides, pads, pads);
    add_command(
        out, dnnl::convolution_forward::primitive_desc(described, attributes(activation), engine_),
        x, w, bias_name == "-" ? nullptr : &bias);
  }

  void* at(const std::string& name) { return values_.at(name).get_data_handle(); }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<std::string, memory> values_;
  std::vector<std::string> outputs_;
  std::vector<Command> commands_;
};

Graph read(const char* steps, const char* values) {
  auto literals = heddle::tensor::read_npz(values);
  if (!literals) throw std::runtime_error(literals.error().message);
  Graph graph(*literals);
  std::ifstream file(steps);
  if (!file) throw std::runtime_error(std::string("cannot read ") + steps);
  for (std::string line; std::getline(file, line);) graph.add(line);
  return graph;
}

void print_list(const char* name, const std::vector<int64_t>& values, const char* end) {
  std::printf("\"%s\": [", name);
  for (size_t i = 0; i < values.size(); ++i)
    std::printf("%s%lld", i == 0 ? "" : ", ", static_cast<long long>(values[i]));
  std::printf("]%s", end);
}

void measure(Graph& graph, int count) {
  std::vector<int64_t> wall, cpu;
  graph.run();
  for (int i = 0; i < count; ++i) {
    const int64_t wall_begin = now_ns(CLOCK_MONOTONIC);
    const int64_t cpu_begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    graph.run();
    cpu.push_back(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin);
    wall.push_back(now_ns(CLOCK_MONOTONIC) - wall_begin);
  }
  std::printf("{");
  print_list("wall_ns", wall, ", ");
  print_list("cpu_ns", cpu, "}\n");
}

void serve(Graph& graph) {
  char line[4096];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    line[std::strcspn(line, "\n")] = '\0';
    if (line[std::strspn(line, "0123456789")] == '\0') {
      measure(graph, std::atoi(line));
    } else {
      const auto written = heddle::tensor::write_npz(line, graph.outputs());
      if (!written) throw std::runtime_error(written.error().message);
      std::printf("{\"written\": true}\n");
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: onednn_probe STEPS VALUES.npz\n");
    return 2;
  }
  try {
    Graph graph = read(argv[1], argv[2]);
    graph.run();
    const dnnl_version_t* version = dnnl_version();
    std::printf("ready onednn %d.%d.%d\n", version->major, version->minor, version->patch);
    std::fflush(stdout);
    serve(graph);
  } catch (const std::exception& error) {  // dnnl::error, or a name or word that is not known
    std::printf("error %s\n", error.what());
    return 1;
  }
  return 0;
}
