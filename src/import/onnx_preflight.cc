// What a model declares, and whether all of it can be imported.
#include <algorithm>
#include <set>

#include "import/onnx_importer.h"

namespace heddle::import {
namespace {

constexpr int kDeepestCalls = 100;

Opsets read_opsets(const std::vector<proto::OpsetImport>& imports, const std::string& where) {
  Opsets opsets;
  for (const proto::OpsetImport& import : imports) {
    const auto [at, fresh] = opsets.emplace(normal_domain(import.domain), import.version);
    if (!fresh && at->second != import.version)
      fail("{}: domain {} is imported with opsets {} and {}", where, quoted(import.domain),
           at->second, import.version);
  }
  const auto onnx = opsets.find("");
  if (onnx != opsets.end() && (onnx->second < kOldestOpset || onnx->second > kNewestOpset))
    fail("{}: opset {} of ai.onnx is not supported, wanted {} to {}; export with another opset",
         where, onnx->second, kOldestOpset, kNewestOpset);
  return opsets;
}

FunctionKey key_of(const proto::Node& node) {
  return {normal_domain(node.domain), node.op_type, node.overload};
}

struct Refused {
  int64_t count = 0;
  std::string first;  // description of the first node
};

// Walks all nodes, those of branches and of called functions included.
class Preflight {
 public:
  explicit Preflight(const ModelFacts& facts) : facts_(facts) {}

  void graph(const proto::Graph& graph, const Opsets& opsets, int depth) {
    if (graph.sparse_initializers > 0) add("sparse initialisers", graph.name);
    nodes(graph.nodes, opsets, depth);
  }

  void report() const {
    if (refused_.empty()) return;
    std::string text;
    int64_t total = 0;
    for (const auto& [what, refused] : refused_) {
      if (!text.empty()) text += "; ";
      text += fmt::format("{} ({} node{}, first: {})", what, refused.count,
                          refused.count == 1 ? "" : "s", refused.first);
      total += refused.count;
    }
    fail("{} node{} cannot be imported: {}", total, total == 1 ? "" : "s", text);
  }

 private:
  void nodes(const std::vector<proto::Node>& nodes, const Opsets& opsets, int depth) {
    if (depth > kDeepestCalls)
      fail("functions or branches nested more than {} deep", kDeepestCalls);
    for (const proto::Node& node : nodes) one(node, opsets, depth);
  }

  void one(const proto::Node& node, const Opsets& opsets, int depth) {
    for (const proto::Attribute& attribute : node.attributes) {
      if (attribute.g != nullptr) graph(*attribute.g, opsets, depth + 1);
    }
    if (const proto::Function* function = facts_.find_function(node)) return call(*function, depth);
    const std::string_view domain = normal_domain(node.domain);
    const auto opset = opsets.find(domain);
    std::string op = quoted(node.op_type);
    op = op.substr(1, op.size() - 2);
    const std::string version =
        opset != opsets.end() ? fmt::format("opset {}", opset->second) : "no opset imported";
    if (opset != opsets.end() && (is_structural(node) || find_op(node) != nullptr)) return;
    if (domain.empty()) return add(fmt::format("{}, {}", op, version), describe(node));
    std::string name = quoted(domain);
    add(fmt::format("{}.{}, {}", name.substr(1, name.size() - 2), op, version), describe(node));
  }

  void call(const proto::Function& function, int depth) {
    if (active_.contains(&function)) fail("function {} calls itself", quoted(function.name));
    if (!done_.insert(&function).second) return;
    active_.insert(&function);
    nodes(function.nodes, facts_.function_opsets.at(&function), depth + 1);
    active_.erase(&function);
  }

  void add(const std::string& what, std::string_view first) {
    Refused& refused = refused_[what];
    if (refused.count++ == 0) refused.first = first;
  }

  const ModelFacts& facts_;
  std::map<std::string, Refused> refused_;
  std::set<const proto::Function*> active_, done_;
};

}  // namespace

const proto::Function* ModelFacts::find_function(const proto::Node& node) const {
  if (functions.empty()) return nullptr;
  const auto found = functions.find(key_of(node));
  return found != functions.end() ? found->second : nullptr;
}

ModelFacts read_facts(const proto::Model& model) {
  ModelFacts facts;
  facts.model = &model;
  if (!model.has_graph) fail("no graph in the model (not an ONNX model, or damaged)");
  if (model.opsets.empty()) fail("the model imports no opset; wanted IR version 3 or newer");
  facts.opsets = read_opsets(model.opsets, "model");
  for (const proto::Function& function : model.functions) {
    const FunctionKey key{normal_domain(function.domain), function.name, function.overload};
    if (!facts.functions.emplace(key, &function).second)
      fail("function {} is defined twice", quoted(function.name));
    facts.function_opsets[&function] =
        read_opsets(function.opsets, fmt::format("function {}", quoted(function.name)));
  }
  return facts;
}

void preflight(const ModelFacts& facts) {
  Preflight walk(facts);
  walk.graph(facts.model->graph, facts.opsets, 0);
  walk.report();
}

}  // namespace heddle::import
