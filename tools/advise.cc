// heddle advise: what a model's designer could change for speed, with the predicted gain.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command_line.h"
#include "commands.h"
#include "compiler/advise.h"
#include "session_options.h"

namespace heddle::tools {
namespace {

class Advise : public Command {
 public:
  std::string_view name() const override { return "advise"; }
  std::string_view summary() const override {
    return "says what a model's designer could change for speed";
  }

  void declare(CommandLine& line) override {
    chosen_.declare(line, "every line, not only the first five of each kind");
    line.examples(
        "  heddle advise model.onnx\n"
        "  heddle advise model.onnx --target avx2\n");
  }

  Result<int> run() override {
    if (!chosen_.compile.stop_after.empty())
      return user_error("advise: --stop-after does not produce a program");
    HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, chosen_.open.open());
    HEDDLE_ASSIGN_OR_RETURN(const api::CompileOptions options, session_options(chosen_.compile));
    HEDDLE_ASSIGN_OR_RETURN(const compiler::AdviceReport report,
                            api::advise(api::unwrap(model.get()), options));
    if (!chosen_.json.only_json()) print(report);
    HEDDLE_RETURN_IF_ERROR(chosen_.json.write(json(report)));
    return 0;
  }

 private:
  void print(const compiler::AdviceReport& report) const {
    fmt::print("predicted: {} per run on one core, {} of it products with their epilogues\n",
               ms_text(report.predicted_ns / 1e6), ms_text(report.product_ns / 1e6));
    constexpr int kFew = 5;
    for (const auto& [kind, head] :
         {std::pair{"alignment", "alignment: columns that do not fill the vectors"},
          std::pair{"activation",
                    "activation: what follows the products, and what others would cost"},
          std::pair{"capacity", "capacity: memory is the limit, arithmetic is free"},
          std::pair{"deepening", "deepening: 1x1 convolutions after others"}}) {
      int64_t shown = 0, count = 0;
      double total = 0;
      for (const compiler::Advice& advice : report.advice) {
        if (advice.kind != kind) continue;
        ++count;
        total += std::max(0.0, advice.gain_ns) * static_cast<double>(advice.uses);
        if (count == 1) fmt::print("\n{}\n", head);
        if (!chosen_.all && shown >= kFew) continue;
        ++shown;
        fmt::print("  {}{}: {}", advice.where,
                   advice.uses > 1 ? fmt::format(" ({} times)", advice.uses) : "", advice.text);
        fmt::print("{}\n", choices_text(advice));
      }
      if (count > shown) fmt::print("  and {} more; --all shows them\n", count - shown);
      if (total > 0)
        fmt::print("  together up to {:.1f}% of the predicted time\n",
                   100 * total / std::max(report.predicted_ns, 1.0));
    }
    if (report.advice.empty()) fmt::print("found nothing to change\n");
  }

  // Each choice with its own gain, of all uses; of an activation its own price, of one.
  static std::string choices_text(const compiler::Advice& advice) {
    const bool priced = advice.kind == "activation";
    std::string text;
    for (size_t i = 0; i < advice.choices.size(); ++i) {
      const compiler::Choice& choice = advice.choices[i];
      if (priced) {
        text +=
            fmt::format("{}{} {}", i == 0 ? "" : ", ", choice.name, ms_text(choice.price_ns / 1e6));
        continue;
      }
      const double gain_ns = choice.gain_ns * static_cast<double>(advice.uses);
      text += (i == 0 ? ": " : ", or ") + choice.name +
              (gain_ns > 0 ? " to save " + ms_text(gain_ns / 1e6) : " at no cost");
    }
    if (!priced) return text;
    return fmt::format("\n    {}: {}", advice.measured ? "measured here" : "predicted", text);
  }

  nlohmann::ordered_json json(const compiler::AdviceReport& report) const {
    nlohmann::ordered_json json;
    json["schema"] = 1;
    json["model"] = chosen_.open.model;
    json["predicted_ms"] = report.predicted_ns / 1e6;
    json["product_ms"] = report.product_ns / 1e6;
    json["advice"] = nlohmann::ordered_json::array();
    for (const compiler::Advice& advice : report.advice) {
      nlohmann::ordered_json one = {{"kind", advice.kind},
                                    {"where", advice.where},
                                    {"text", advice.text},
                                    {"uses", advice.uses},
                                    {"gain_ms", advice.gain_ns / 1e6}};
      if (!advice.choices.empty()) {
        one["measured"] = advice.measured;
        one["choices"] = nlohmann::ordered_json::array();
      }
      for (const compiler::Choice& choice : advice.choices) {
        one["choices"].push_back({{"name", choice.name}, {"gain_ms", choice.gain_ns / 1e6}});
        if (advice.kind == "activation") one["choices"].back()["price_ms"] = choice.price_ns / 1e6;
      }
      json["advice"].push_back(std::move(one));
    }
    return json;
  }

  ReportChoices chosen_;
};

}  // namespace

std::unique_ptr<Command> make_advise() { return std::make_unique<Advise>(); }

}  // namespace heddle::tools
