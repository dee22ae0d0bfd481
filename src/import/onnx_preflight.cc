// A model's declarations, and whether all of it can be imported.
#include <algorithm>
#include <set>

#include "import/onnx_importer.h"

namespace heddle::import {
namespace {

constexpr int kDeepestCalls = 100;
constexpr size_t kMostPlaces = 20;

Opsets read_opsets(const std::vector<proto::OpsetImport>& imports, const std::string& where) {
  Opsets opsets;
  for (const proto::OpsetImport& import : imports) {
    const auto [at, fresh] = opsets.emplace(normal_domain(import.domain), import.version);
    if (!fresh && at->second != import.version)
      fail("{}: domain {} is imported with opsets {} and {}", where, quoted(import.domain),
           at->second, import.version);
  }
  return opsets;
}

FunctionKey key_of(const proto::Node& node) {
  return {normal_domain(node.domain), node.op_type, node.overload};
}

// A name without the quotes of messages.
std::string plain(std::string_view name) {
  const std::string text = quoted(name);
  return text.substr(1, text.size() - 2);
}

// Workarounds for operators that will not be supported.
std::string way_out(std::string_view name, bool of_onnx) {
  constexpr std::pair<std::string_view, const char*> kWays[] = {
      {"ImageDecoder", "decode the image before the model, and give it the pixels"},
      {"Gradient", "export the gradients as a graph of their own"},
      {"ai.onnx.ml.CastMap",
       "a map is no tensor: export the model without it, and give its values "
       "as a table"},
      {"ai.onnx.ml.DictVectorizer",
       "a map is no tensor: export the model without it, and give the "
       "table of numbers"},
  };
  for (const auto& [suffix, way] : kWays)
    if (name.ends_with(suffix)) return way;
  return of_onnx ? "export with another opset, or without this operator"
                 : "export without it, or with it as a function of the model";
}

// Walks all nodes, including those of branches and called functions.
class Preflight {
 public:
  explicit Preflight(const ModelFacts& facts) : facts_(facts) {}

  SupportReport run() {
    opset("model", facts_.opsets);
    for (const auto& [function, opsets] : facts_.function_opsets)
      opset(fmt::format("function {}", quoted(function->name)), opsets);
    graph(facts_.model->graph, facts_.opsets, 0);
    inputs();
    SupportReport report;
    report.nodes = nodes_;
    report.operators = static_cast<int64_t>(seen_.size());
    for (auto& [key, fault] : faults_) report.faults.push_back(std::move(fault));
    return report;
  }

 private:
  void graph(const proto::Graph& graph, const Opsets& opsets, int depth) {
    if (graph.sparse_initializers > 0)
      add({"initialiser",
           "sparse initialisers",
           "",
           0,
           graph.sparse_initializers - 1,
           {},
           "make them dense"},
          plain(graph.name));
    for (const proto::Tensor& tensor : graph.initializers) {
      try {
        if (tensor.data_type != kStringType) element_type(tensor.data_type, "");
      } catch (const Failure&) {
        add({"element type",
             fmt::format("initialisers of element type {}", tensor.data_type),
             "",
             0,
             0,
             {},
             "cast them to a type of ONNX"},
            plain(tensor.name));
      }
    }
    nodes(graph.nodes, opsets, depth);
  }

  void opset(const std::string& where, const Opsets& opsets) {
    const auto onnx = opsets.find("");
    if (onnx == opsets.end() || (onnx->second >= kOldestOpset && onnx->second <= kNewestOpset))
      return;
    add({"opset",
         fmt::format("opset {} of ai.onnx", onnx->second),
         fmt::format("wanted {} to {}", kOldestOpset, kNewestOpset),
         onnx->second,
         0,
         {},
         "export with another opset"},
        where);
  }

  void inputs() {
    using Kind = proto::ValueInfo::Kind;
    for (const proto::ValueInfo& input : facts_.model->graph.inputs) {
      const proto::ValueInfo* inner = &input;
      while (inner->kind == Kind::optional && inner->element != nullptr)
        inner = inner->element.get();
      if (inner->kind == Kind::map || inner->kind == Kind::sparse || inner->kind == Kind::opaque)
        add({"input",
             inner->kind == Kind::map      ? "maps as inputs"
             : inner->kind == Kind::sparse ? "sparse tensors as inputs"
                                           : "opaque values as inputs",
             "",
             0,
             0,
             {},
             "export the model with a dense tensor in its place"},
            plain(input.name));
    }
  }

  void nodes(const std::vector<proto::Node>& nodes, const Opsets& opsets, int depth) {
    if (depth > kDeepestCalls)
      fail("functions or branches nested more than {} deep", kDeepestCalls);
    for (const proto::Node& node : nodes) one(node, opsets, depth);
  }

  void one(const proto::Node& node, const Opsets& opsets, int depth) {
    ++nodes_;
    for (const proto::Attribute& attribute : node.attributes) {
      if (attribute.g != nullptr) graph(*attribute.g, opsets, depth + 1);
    }
    if (const proto::Function* function = facts_.find_function(node)) return call(*function, depth);
    const std::string_view domain = normal_domain(node.domain);
    const auto opset = opsets.find(domain);
    std::string name = plain(node.op_type);
    if (!domain.empty()) name = plain(domain) + "." + name;
    seen_.insert(name);
    const bool known = is_structural(node) || find_op(node) != nullptr;
    if (opset != opsets.end() && known) return;
    add({"operator",
         name,
         known ? "its domain is not imported" : "",
         opset != opsets.end() ? opset->second : 0,
         0,
         {},
         known ? "add the domain to the model's opset imports" : way_out(name, domain.empty())},
        describe(node));
  }

  void call(const proto::Function& function, int depth) {
    if (active_.contains(&function)) fail("function {} calls itself", quoted(function.name));
    if (!done_.insert(&function).second) return;
    active_.insert(&function);
    nodes(function.nodes, facts_.function_opsets.at(&function), depth + 1);
    active_.erase(&function);
  }

  void add(Unsupported fault, const std::string& place) {
    Unsupported& known =
        faults_.emplace(std::tuple(fault.kind, fault.what, fault.opset), fault).first->second;
    ++known.count;
    if (known.places.size() < kMostPlaces) known.places.push_back(place);
  }

  const ModelFacts& facts_;
  int64_t nodes_ = 0;
  std::set<std::string> seen_;
  std::map<std::tuple<std::string, std::string, int64_t>, Unsupported> faults_;
  std::set<const proto::Function*> active_, done_;
};

// "Foo, opset 13 (2 nodes, first: node 'a' (Foo))".
std::string fault_text(const Unsupported& fault) {
  if (fault.kind == "opset")
    return fmt::format("{}: {} is not supported, {}; {}", fault.places.front(), fault.what,
                       fault.detail, fault.way_out);
  std::string what = fault.what;
  if (fault.kind == "operator")
    what += fault.opset > 0 ? fmt::format(", opset {}", fault.opset) : ", no opset imported";
  return fmt::format("{} ({} {}{}, first: {})", what, fault.count,
                     fault.kind == "operator" ? "node" : "place", fault.count == 1 ? "" : "s",
                     fault.places.front());
}

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

SupportReport support_of(const ModelFacts& facts) { return Preflight(facts).run(); }

void preflight(const ModelFacts& facts, std::vector<Unsupported>* unsupported) {
  const SupportReport report = support_of(facts);
  // Only set on failure: later imports of the same model, possibly on other threads, do not get
  // here.
  const auto tell = [&] {
    if (unsupported != nullptr) *unsupported = report.faults;
  };
  std::string text;
  int64_t total = 0;
  for (const Unsupported& fault : report.faults) {
    if (fault.kind == "opset") {
      tell();
      fail_as(ErrorKind::unsupported, "{}", fault_text(fault));
    }
    if (fault.kind != "operator" && fault.kind != "initialiser") continue;  // reported later
    text += (text.empty() ? "" : "; ") + fault_text(fault);
    total += fault.count;
  }
  if (total == 0) return;
  tell();
  fail_as(ErrorKind::unsupported, "{} node{} cannot be imported: {}", total, total == 1 ? "" : "s",
          text);
}

}  // namespace heddle::import
