// Einsum: terms are combined from left to right, each pair by one dot (or a product if nothing is
// contracted); a label that is not needed later is summed once only one term has it.
#include <algorithm>
#include <map>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// A label is a letter, or -k for the k-th dimension from the right of an ellipsis.
using Label = int;
using Labels = std::vector<Label>;

struct Term {
  Instr* x = nullptr;
  Labels labels;
};

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int64_t place(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "b...ij" with an ellipsis of `ellipsis_rank` dimensions.
Labels parse_term(Op& op, std::string_view text, int64_t ellipsis_rank) {
  Labels labels;
  bool seen = false;
  while (!text.empty()) {
    if (is_letter(text[0])) {
      labels.push_back(text[0]);
      text.remove_prefix(1);
    } else if (!seen && text.starts_with("...")) {
      seen = true;
      for (int64_t k = ellipsis_rank; k > 0; --k) labels.push_back(static_cast<Label>(-k));
      text.remove_prefix(3);
    } else {
      op.fail("the equation has {} where a letter is wanted", quoted(text.substr(0, 1)));
    }
  }
  return labels;
}

struct Equation {
  std::vector<Labels> terms;
  Labels output;
};

int64_t letters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), is_letter);
}

// Labels that appear exactly once, in order, the ellipsis first.
Labels implicit_output(const std::vector<Labels>& terms) {
  std::map<Label, int> count;
  for (const Labels& term : terms) {
    for (Label label : term) ++count[label];
  }
  Labels output;
  for (const auto& [label, times] : count) {
    if (label < 0 || times == 1) output.push_back(label);
  }
  return output;
}

Equation parse(Op& op, std::string text) {
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  std::vector<std::string_view> parts;
  for (size_t comma = left.find(','); comma != std::string_view::npos; comma = left.find(',')) {
    parts.push_back(left.substr(0, comma));
    left.remove_prefix(comma + 1);
  }
  parts.push_back(left);
  if (parts.size() != op.inputs())
    op.fail("equation {} has {} terms for {} inputs", quoted(text), parts.size(), op.inputs());
  Equation equation;
  int64_t widest = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool ellipsis = parts[i].find('.') != std::string_view::npos;
    const int64_t rest = op.rank(i) - letters(parts[i]);
    if (rest < 0 || (rest > 0 && !ellipsis))
      op.fail("term {} does not fit input {}, {}", quoted(parts[i]), i, to_string(op.shape(i)));
    equation.terms.push_back(parse_term(op, parts[i], rest));
    if (ellipsis) widest = std::max(widest, rest);
  }
  equation.output = arrow == std::string::npos
                        ? implicit_output(equation.terms)
                        : parse_term(op, std::string_view(text).substr(arrow + 2), widest);
  Labels sorted = equation.output;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    op.fail("equation {} repeats a label in its result", quoted(text));
  for (Label label : equation.output) {
    if (std::none_of(equation.terms.begin(), equation.terms.end(),
                     [&](const Labels& term) { return contains(term, label); }))
      op.fail("equation {} has a label in its result that no term has", quoted(text));
  }
  return equation;
}

// Takes the diagonal of a term that has a label twice.
void take_diagonals(Op& op, Term& term) {
  for (size_t j = 1; j < term.labels.size(); ++j) {
    const auto i = static_cast<size_t>(place(term.labels, term.labels[j]));
    if (i == j) continue;
    const Ints extents = term.x->shape().extents();
    if (extents[i] != extents[j])
      op.fail("a repeated label has dimensions {} and {}", extents[i], extents[j]);
    Instr* on = op.b.compare(Direction::eq, iota(op, Type::s64, extents, static_cast<int64_t>(i)),
                             iota(op, Type::s64, extents, static_cast<int64_t>(j)));
    Instr* kept = select(op, on, term.x, op.b.scalar(term.x->shape().type(), 0));
    term.x = op.b.reduce(Opcode::add, kept, {static_cast<int64_t>(j)});
    term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(j--));
  }
}

// Drops dimensions of extent 1 that are stretched to match another term.
void drop_stretched(Op& op, std::vector<Term>& terms) {
  std::map<Label, int64_t> extents;
  for (const Term& term : terms) {
    for (size_t i = 0; i < term.labels.size(); ++i) {
      const int64_t extent = term.x->shape().dim(static_cast<int64_t>(i));
      int64_t& known = extents.try_emplace(term.labels[i], extent).first->second;
      if (known != extent && known != 1 && extent != 1)
        op.fail("a label has dimensions {} and {}", known, extent);
      if (known == 1) known = extent;
    }
  }
  for (Term& term : terms) {
    Ints kept;
    Labels labels;
    for (size_t i = 0; i < term.labels.size(); ++i) {
      const int64_t extent = term.x->shape().dim(static_cast<int64_t>(i));
      if (extent == 1 && extents[term.labels[i]] != 1) continue;
      kept.push_back(extent);
      labels.push_back(term.labels[i]);
    }
    if (labels.size() == term.labels.size()) continue;
    term.x = reshape(op, term.x, kept);
    term.labels = labels;
  }
}

// Sums over the labels not in `needed`.
void sum_unneeded(Op& op, Term& term, const Labels& needed) {
  Ints dims;
  Labels labels;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (contains(needed, term.labels[i])) {
      labels.push_back(term.labels[i]);
    } else {
      dims.push_back(static_cast<int64_t>(i));
    }
  }
  if (dims.empty()) return;
  term.x = op.b.reduce(Opcode::add, term.x, dims);
  term.labels = labels;
}

void append(Labels& to, const Labels& from) { to.insert(to.end(), from.begin(), from.end()); }

Term product_of(Op& op, const Term& a, const Term& b, const Labels& labels) {
  Ints extents;
  for (Label label : labels) {
    const Term& from = contains(a.labels, label) ? a : b;
    extents.push_back(from.x->shape().dim(place(from.labels, label)));
  }
  op.check_extents(extents);
  const auto spread = [&](const Term& term) {
    Ints dims;
    for (Label label : term.labels) dims.push_back(place(labels, label));
    // HLO broadcasts need ascending dimensions; otherwise transpose first.
    Ints permutation = range(0, static_cast<int64_t>(dims.size()));
    std::sort(permutation.begin(), permutation.end(), [&](int64_t x, int64_t y) {
      return dims[static_cast<size_t>(x)] < dims[static_cast<size_t>(y)];
    });
    std::sort(dims.begin(), dims.end());
    Instr* x = term.x;
    if (!std::is_sorted(permutation.begin(), permutation.end())) x = op.b.transpose(x, permutation);
    return dims.size() == labels.size() ? x : op.b.broadcast(x, extents, dims);
  };
  return {op.b.binary(Opcode::multiply, spread(a), spread(b)), labels};
}

// Common labels are batch dimensions if they are needed later, else contracted.
Term combine(Op& op, const Term& a, const Term& b, const Labels& needed) {
  Labels batch, left, right;
  hlo::DotAttrs attrs;
  for (Label label : a.labels) {
    if (!contains(b.labels, label)) {
      left.push_back(label);
    } else if (contains(needed, label)) {
      batch.push_back(label);
      attrs.lhs_batch_dims.push_back(place(a.labels, label));
      attrs.rhs_batch_dims.push_back(place(b.labels, label));
    } else {
      attrs.lhs_contracting_dims.push_back(place(a.labels, label));
      attrs.rhs_contracting_dims.push_back(place(b.labels, label));
    }
  }
  for (Label label : b.labels) {
    if (!contains(a.labels, label)) right.push_back(label);
  }
  Labels labels = batch;
  append(labels, left);
  append(labels, right);
  if (attrs.lhs_contracting_dims.empty()) return product_of(op, a, b, labels);
  return {op.b.dot(a.x, b.x, std::move(attrs)), labels};
}

Outputs einsum(Op& op) {
  if (!op.has_attr("equation")) op.fail("attribute 'equation' is missing");
  const Equation equation = parse(op, op.string_attr("equation", ""));
  std::vector<Term> terms;
  for (size_t i = 0; i < op.inputs(); ++i) {
    if (op.type(i) != op.type(0)) op.fail("input {} is {}", i, to_string(op.shape(i)));
    terms.push_back({op.in(i), equation.terms[i]});
    take_diagonals(op, terms.back());
  }
  drop_stretched(op, terms);
  Term result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    Labels later = equation.output;
    for (size_t j = i + 1; j < terms.size(); ++j) append(later, terms[j].labels);
    Labels needed_left = later, needed_right = later;
    append(needed_left, terms[i].labels);
    append(needed_right, result.labels);
    sum_unneeded(op, result, needed_left);
    sum_unneeded(op, terms[i], needed_right);
    result = combine(op, result, terms[i], later);
    op.check_builder();
    op.check_extents(result.x->shape().extents());
  }
  sum_unneeded(op, result, equation.output);
  Ints permutation;
  for (Label label : equation.output) permutation.push_back(place(result.labels, label));
  if (std::is_sorted(permutation.begin(), permutation.end())) return {result.x};
  return {op.b.transpose(result.x, permutation)};
}

constexpr OpEntry kOps[] = {
    {"Einsum", 1, -1, einsum},
};

}  // namespace

std::span<const OpEntry> einsum_ops() { return kOps; }

}  // namespace heddle::import
