#include "compiler/advise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

#include "compiler/activations.h"
#include "compiler/tune.h"
#include "cost/gemm_time.h"
#include "cost/operator_cycles.h"
#include "schedule/place.h"
#include "schedule/tuning.h"

namespace heddle::compiler {

namespace {

using stage::GemmShape;
using stage::Node;
using stage::Stage;

// Advice below this share of the product is not worth a line.
constexpr double kLeastShare = 0.02;

// A product with its epilogue.
struct Product {
  std::string name;
  bool convolution = false, one_by_one = true;
  GemmShape shape;
  stage::Gemm gemm;
  double rows = 1;   // of all, batch included
  double ns = 0;     // products alone
  double bytes = 0;  // operands and results
  double epilogue_ns = 0;
  std::string epilogue;                 // its expensive or non-linear operators
  std::shared_ptr<hlo::Module> kernel;  // as a module of its own
  bool is_f32 = true;                   // all its inputs: samples have f32 inputs only
  int64_t uses = 1;
  double total_ns() const { return (ns + epilogue_ns) * static_cast<double>(uses); }
};

// Operators that count as an activation although they are cheap.
bool bends(hlo::Opcode opcode) {
  return opcode == hlo::Opcode::maximum || opcode == hlo::Opcode::minimum ||
         opcode == hlo::Opcode::clamp || opcode == hlo::Opcode::select;
}

class Adviser {
 public:
  Adviser(const target::Target& target, bool fast_forms, const Measure& measure)
      : target_(target), fast_forms_(fast_forms), measure_(measure) {}

  void add(const hlo::Computation& fused) {
    const stage::PlacedFusion placed = schedule::place(fused, target_, fast_forms_);
    if (!placed.decision) return;
    double bytes = 0;
    for (const stage::Input& input : placed.graph.inputs)
      bytes += static_cast<double>(input.shape.bytes());
    for (const stage::Output& output : placed.graph.outputs)
      bytes += static_cast<double>(output.shape.bytes());
    if (!stage::is_gemm(placed)) {
      report_.predicted_ns += bytes / std::max(target_.memory_bandwidth_bytes_per_ns, 1e-3);
      return;
    }
    Product product = describe(placed);
    product.bytes = bytes;
    for (const stage::Input& input : placed.graph.inputs)
      product.is_f32 = product.is_f32 && input.shape.type() == tensor::Type::f32;
    const double ns = product.ns + product.epilogue_ns;
    report_.product_ns += ns;
    report_.predicted_ns += ns;
    const std::string key =
        fmt::format("{}x{}x{} {} {}", product.rows, product.shape.n_extent, product.shape.k_extent,
                    to_string(product.gemm), product.epilogue);
    const auto [place, added] = places_.try_emplace(key, products_.size());
    if (added) {
      if (!product.epilogue.empty()) {
        product.kernel = std::make_shared<hlo::Module>("kernel");
        product.kernel->set_entry(product.kernel->clone_computation(fused, "entry"));
      }
      products_.push_back(std::move(product));
    } else
      ++products_[place->second].uses;
  }

  Result<AdviceReport> finish() {
    std::stable_sort(products_.begin(), products_.end(), [](const Product& a, const Product& b) {
      return a.total_ns() > b.total_ns();
    });
    for (const Product& product : products_) {
      alignment(product);
      HEDDLE_RETURN_IF_ERROR(activation(product));
      capacity(product);
      deepening(product);
    }
    std::stable_sort(
        report_.advice.begin(), report_.advice.end(), [](const Advice& a, const Advice& b) {
          return a.gain_ns * static_cast<double>(a.uses) > b.gain_ns * static_cast<double>(b.uses);
        });
    return std::move(report_);
  }

 private:
  Product describe(const stage::PlacedFusion& placed) const {
    const auto& row = std::get<stage::Row>(placed.schedule.nodes[0]);
    const Stage& stage = placed.graph.stage(row.joined[0]);
    Product product;
    product.name = stage.instr ? stage.instr->name() : stage.name;
    product.convolution = stage.kind == hlo::StageKind::conv;
    product.shape = row.gemm()->shape;
    product.one_by_one = product.shape.windows.empty();
    product.gemm = row.gemm()->record;
    product.rows = static_cast<double>(stage.out_elems()) /
                   static_cast<double>(std::max<int64_t>(product.shape.n_extent, 1));
    product.ns = ns_of(product, product.shape.n_extent, product.rows);
    for (size_t i = 1; i < row.joined.size(); ++i) {
      const Stage& map = placed.graph.stage(row.joined[i]);
      const double vectors = static_cast<double>(map.out_elems()) / product.gemm.lanes;
      for (const Node& node : map.nodes) {
        const double cycles = node.kind == Node::Kind::op
                                  ? cost::operator_cycles(node.opcode, node.fast, target_)
                                  : 0;
        product.epilogue_ns += vectors * cycles / target_.clock_ghz;
        if (cycles < 3 && !(node.kind == Node::Kind::op && bends(node.opcode))) continue;
        if (!product.epilogue.empty()) product.epilogue += ", ";
        product.epilogue += hlo::opcode_text(node.opcode);
      }
    }
    return product;
  }

  // Time of the product alone with other columns and rows: the family's model for one batch of
  // rows.
  double ns_of(const Product& product, int64_t columns, double rows) const {
    const double batches = product.rows / static_cast<double>(product.shape.m_extent);
    const int64_t m =
        std::max<int64_t>(1, static_cast<int64_t>(std::llround(rows / std::max(batches, 1.0))));
    stage::Gemm gemm = product.gemm;
    gemm.mr = static_cast<int>(std::min<int64_t>(gemm.mr * std::max(gemm.my, 1), m));
    return std::max(batches, 1.0) *
           cost::gemm_cycles(gemm, m, columns, product.shape.k_extent, target_) / target_.clock_ghz;
  }

  void put(const Product& product, const char* kind, std::string text, double gain_ns) {
    Advice advice{kind, product.name, std::move(text)};
    advice.gain_ns = gain_ns;
    advice.uses = product.uses;
    report_.advice.push_back(std::move(advice));
  }

  void alignment(const Product& product) {
    const int64_t n = product.shape.n_extent, lanes = product.gemm.lanes;
    const int64_t padded = (n + lanes - 1) / lanes * lanes, fewer = padded - lanes;
    if (padded == n) return;
    const double wider_ns = ns_of(product, padded, product.rows) - product.ns;
    if (wider_ns > kLeastShare * product.ns) return;  // padding to `padded` would not be free
    const char* what = product.convolution ? "channels" : "columns";
    Advice advice{"alignment", product.name,
                  fmt::format("{} {} cost as much as {}", n, what, padded)};
    advice.choices.push_back({fmt::format("widen to {}", padded)});
    const double saved = fewer > 0 ? product.ns - ns_of(product, fewer, product.rows) : 0;
    if (saved >= kLeastShare * product.ns) {
      advice.choices.push_back({fmt::format("narrow to {}", fewer), saved});
      advice.gain_ns = saved;
    }
    advice.uses = product.uses;
    report_.advice.push_back(std::move(advice));
  }

  // Prices each activation after the product, against the present epilogue.
  Status activation(const Product& product) {
    if (product.kernel == nullptr) return {};
    const bool measured = measure_ && measured_ < kMostMeasured && product.is_f32;
    std::shared_ptr<hlo::Module> kernel = product.kernel;
    if (measured) kernel = make_sample(*kernel->entry());
    const std::unique_ptr<hlo::Module> bare = with_activation(*kernel, nullptr);
    if (bare == nullptr) return {};
    measured_ += measured;
    double bare_ns = product.ns, own_ns = product.epilogue_ns;
    if (measured) {
      HEDDLE_ASSIGN_OR_RETURN(bare_ns, measure_(*bare));
      HEDDLE_ASSIGN_OR_RETURN(own_ns, measure_(*kernel));
      own_ns = std::max(0.0, own_ns - bare_ns);
    }
    Advice advice{"activation", product.name};
    for (const Activation& activation : activations()) {
      const std::unique_ptr<hlo::Module> made = with_activation(*kernel, &activation);
      double ns = 0;
      if (measured) {
        HEDDLE_ASSIGN_OR_RETURN(ns, measure_(*made));
        ns = std::max(0.0, ns - bare_ns);
      } else {
        const stage::PlacedFusion placed = schedule::place(*made->entry(), target_, fast_forms_);
        if (!placed.decision || !stage::is_gemm(placed)) return {};
        ns = describe(placed).epilogue_ns;
      }
      advice.choices.push_back({activation.name, own_ns - ns, ns});
      advice.gain_ns = std::max(advice.gain_ns, own_ns - ns);
    }
    advice.text = fmt::format("{} cost {:.3g} us of {:.4g} us", product.epilogue, own_ns / 1e3,
                              (bare_ns + own_ns) / 1e3);
    advice.uses = product.uses;
    advice.measured = measured;
    report_.advice.push_back(std::move(advice));
    return {};
  }

  // Few rows: the time is that of reading the weights, for any number of rows.
  void capacity(const Product& product) {
    if (product.convolution) return;
    const double traffic = product.bytes / std::max(target_.memory_bandwidth_bytes_per_ns, 1e-3);
    if (traffic < 1.5 * product.ns) return;
    const double rows = product.rows * traffic / product.ns;
    put(product, "capacity",
        fmt::format("reads {:.3g} MB for {:.0f} row{}: up to {:.0f} rows take about the same time",
                    product.bytes / 1e6, product.rows, product.rows == 1 ? "" : "s",
                    std::floor(rows)),
        0);
  }

  void deepening(const Product& product) {
    if (!product.convolution || product.one_by_one) return;
    const int64_t n = product.shape.n_extent;
    stage::Gemm gemm =
        schedule::choose_gemm(static_cast<int64_t>(product.rows), n, n, true, target_);
    const double ns = cost::gemm_cycles(gemm, static_cast<int64_t>(product.rows), n, n, target_) /
                      target_.clock_ghz;
    put(product, "deepening",
        fmt::format("a 1x1 convolution of {} channels after it would cost {:.1f}% of a run", n,
                    100 * ns / std::max(report_.predicted_ns, 1.0)),
        -ns);
  }

  const target::Target& target_;
  bool fast_forms_;
  const Measure& measure_;
  int measured_ = 0;  // products with measured activations
  AdviceReport report_;
  std::vector<Product> products_;
  std::map<std::string, size_t> places_;
};

}  // namespace

Result<AdviceReport> advise(std::unique_ptr<hlo::Module> module, const target::Target& target,
                            const Options& options, const Measure& measure) {
  // Without chains of products: they save traffic, which the advice does not cover.
  Options apart = options;
  if (apart.fuse == Fuse::stitch) apart.fuse = Fuse::greedy;
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> fused,
                          fuse_only(std::move(module), target, apart));
  Adviser adviser(target, options.numerics != Numerics::strict, measure);
  // Instructions that depend on constants alone run once at load time, not in a run.
  std::unordered_set<const hlo::Instr*> once;
  for (const hlo::Computation* computation : fused->post_order()) {
    for (const hlo::Instr* instr : computation->instrs()) {
      const auto& operands = instr->operands();
      const bool prepared =
          !instr->is(hlo::Opcode::parameter) &&
          std::all_of(operands.begin(), operands.end(), [&](const hlo::Instr* operand) {
            return operand->is(hlo::Opcode::constant) || once.count(operand) > 0;
          });
      if (prepared)
        once.insert(instr);
      else if (instr->is(hlo::Opcode::fusion))
        adviser.add(*instr->called().at(0));
    }
  }
  return adviser.finish();
}

}  // namespace heddle::compiler
