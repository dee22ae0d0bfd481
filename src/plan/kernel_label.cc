#include "plan/kernel_label.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "hlo/top_k_part.h"
#include "hlo/winograd_filter.h"

namespace heddle::plan {
namespace {

using hlo::CostClass;
using hlo::Instr;
using hlo::Mapping;
using hlo::Opcode;
using hlo::StageKind;

constexpr size_t kMostWords = 4;
// Operators that are part of a softmax or a normalisation, and of a GELU.
const std::set<std::string, std::less<>> kOfRows = {
    "exp", "rsqrt", "sqrt", "reduce", "add", "divide", "subtract", "maximum", "multiply"};
const std::set<std::string, std::less<>> kOfGelu = {"erf", "add", "multiply", "divide"};

// Order of naming. Views and copies of scalars are not named.
enum class Rank : uint8_t { heavy, costly, cheap, move, none };

Rank rank_of(const Instr& instr) {
  const hlo::OpcodeInfo& info = hlo::opcode_info(instr.opcode());
  if (instr.is(Opcode::while_)) return Rank::heavy;
  if (info.stage == StageKind::none || hlo::winograd_filter(instr) > 0) return Rank::none;
  if (info.stage != StageKind::map || info.mapping == Mapping::runtime) return Rank::heavy;
  if (info.cost >= CostClass::divide) return Rank::costly;
  if (info.cost == CostClass::cheap) return Rank::cheap;
  const bool view = info.mapping == Mapping::regroup || info.mapping == Mapping::broadcast ||
                    info.mapping == Mapping::generate;
  return view ? Rank::none : Rank::move;
}

std::string word_of(const Instr& instr) {
  switch (instr.opcode()) {
    case Opcode::convolution:
      return "conv";
    case Opcode::exponential:
      return "exp";
    case Opcode::while_:
      return "loop";
    case Opcode::dynamic_update_slice:
      return "update";
    case Opcode::custom_call:
      return hlo::top_k_part(instr) ? "topk" : "call";
    default:
      break;
  }
  std::string word(hlo::opcode_text(instr.opcode()));
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
}

class Words {
 public:
  void add(const hlo::Computation& computation) {
    for (const Instr* instr : computation.instrs()) {
      const bool runs = instr->is(Opcode::fusion) || instr->is(Opcode::while_);
      if (const Rank rank = rank_of(*instr); rank != Rank::none)
        ranks_[static_cast<size_t>(rank)].push_back(word_of(*instr));
      if (runs) add(*instr->called().back());
    }
  }

  // Operators that form a known function are replaced by its name, at the first one's position.
  void name_functions() {
    if (has("exp") && has("reduce") && has("divide")) rename("reduce", "softmax", kOfRows);
    if (has("reduce") && (has("rsqrt") || has("sqrt"))) rename("reduce", "norm", kOfRows);
    if (has("erf") && has("multiply")) rename("erf", "gelu", kOfGelu);
  }

  std::string text() const {
    std::string text;
    size_t count = 0;
    std::set<std::string> seen;
    for (const std::vector<std::string>& words : ranks_) {
      if (&words == &ranks_.back() && count > 0) break;  // movement only if nothing else
      const std::string* last = nullptr;
      for (const std::string& word : words) {
        const bool heavy = &words == &ranks_.front();
        if (count == kMostWords || (heavy ? last && *last == word : seen.contains(word))) continue;
        text += (count++ == 0 ? "" : "_") + word;
        seen.insert(word);
        last = &word;
      }
    }
    return text.empty() ? "copy" : text;
  }

 private:
  bool has(std::string_view word) const {
    return std::any_of(ranks_.begin(), ranks_.end(), [&](const auto& words) {
      return std::find(words.begin(), words.end(), word) != words.end();
    });
  }

  void rename(std::string_view first, std::string_view function,
              const std::set<std::string, std::less<>>& parts) {
    for (auto& words : ranks_) {
      if (const auto at = std::find(words.begin(), words.end(), first); at != words.end())
        *at = function;
      std::erase_if(words, [&](const std::string& word) { return parts.contains(word); });
    }
  }

  std::array<std::vector<std::string>, static_cast<size_t>(Rank::none)> ranks_;
};

}  // namespace

std::string kernel_label(const hlo::Computation& fusion) {
  Words words;
  words.add(fusion);
  words.name_functions();
  return words.text();
}

std::string KernelLabels::label_of(const Instr& fusion) {
  std::string label = fusion.called().empty() ? word_of(fusion) : kernel_label(*fusion.called()[0]);
  const int64_t use = ++uses_[label];
  return use == 1 ? label : label + "." + std::to_string(use);
}

}  // namespace heddle::plan
