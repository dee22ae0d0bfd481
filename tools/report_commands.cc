#include "report_commands.h"

#include <unordered_map>

#include "api/command_report.h"
#include "breakdown.h"
#include "compiler/compile_options.h"
#include "fused_text.h"
#include "layers.h"
#include "program/nodes_text.h"
#include "program/views.h"
#include "repeats.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;
using program::Buffer;
using program::BufferId;
using program::BufferKind;
using program::Command;
using program::CommandInfo;
using program::Use;
using program::View;

constexpr size_t kMostSources = 2;  // names of constants that one prepared weight is made of

// Of a kernel what it is most; else what the command is.
std::string kind_of(const api::CommandReport& told) {
  if (std::string_view(told.kind) != "kernel") return told.kind;
  if (is_product(told.operators)) return "product";
  return std::string_view(told.operators).find("reduce") != std::string_view::npos ? "reduction"
                                                                                   : "map";
}

}  // namespace

size_t Interned::add(const std::string& text) {
  const auto [known, added] = numbers_.try_emplace(text, all_.size());
  if (added) all_.push_back(text);
  return known->second;
}

ReportCommands::ReportCommands(const ReportSources& sources, PageTexts* texts)
    : sources_(sources),
      program_(*sources.program.compiled()),
      texts_(texts),
      flow_(dataflow_of(program_)),
      once_sources_(sources_of_once(program_)),
      shapes_(program_.buffers.size()) {
  for (const auto& kernel : sources.program.report().kernels)
    predicted_ns_[kernel.name] = kernel.predicted_ns;
  const auto see = [&](const Command& command) {
    program::for_each_view(command, [&](const View& view, Use) {
      if (!view.buffer.valid() || !shapes_[view.buffer.index()].empty()) return;
      shapes_[view.buffer.index()] = tensor::to_string(view.shape, false);
    });
  };
  program::for_each_command(program_, program_.commands, program_.command_info,
                            [&](const Command& command, const CommandInfo& info, int depth) {
                              all_.push_back({&command, &info, depth});
                              see(command);
                            });
  program::for_each_command(program_, program_.once, program_.once_info,
                            [&](const Command& command, const CommandInfo&, int) { see(command); });
}

void ReportCommands::add_layers(ordered_json* json) {
  std::vector<std::string> signs, scopes, firsts, names;
  for (const One& one : all_) {
    const auto* launch = std::get_if<program::Launch>(one.command);
    signs.push_back(launch != nullptr ? program_.kernels[launch->kernel.index()].name
                                      : one.info->operators + " " + std::to_string(one.depth));
    firsts.push_back(one.info->nodes.empty() ? "" : one.info->nodes.front());
    scopes.push_back(layer_of_node(firsts.back()));
    names.push_back(one.info->name);
  }
  const std::vector<Repeat> repeats = repeats_of(signs, scopes);
  CommandLayers layers = layers_of(names, firsts, repeats);
  (*json)["layers"] = std::move(layers.names);
  layers_ = std::move(layers.of);
  (*json)["repeats"] = ordered_json::array();
  for (const Repeat& repeat : repeats)
    (*json)["repeats"].push_back(
        {{"first", repeat.first}, {"period", repeat.period}, {"count", repeat.count}});
}

// Constants that it reads, and what the once section made of some: numbers in `weights`.
ordered_json ReportCommands::weights_of(size_t number) {
  ordered_json result = ordered_json::array();
  for (BufferId id : flow_.given[number]) {
    const Buffer& buffer = program_.buffers[id.index()];
    if (buffer.kind != BufferKind::constant && buffer.kind != BufferKind::once) continue;
    const auto [known, added] = weight_numbers_.try_emplace(id.value, weights_.size());
    result.push_back(known->second);
    if (!added) continue;
    ordered_json weight = {
        {"name", buffer.name}, {"shape", shapes_[id.index()]}, {"bytes", buffer.bytes}};
    const std::vector<BufferId>& from = once_sources_[id.index()];
    if (buffer.kind == BufferKind::once) {
      std::vector<std::string> names;
      for (BufferId source : from) names.push_back(program_.buffers[source.index()].name);
      weight["prepared"] = buffer.name;
      if (!names.empty()) weight["name"] = program::nodes_text(names, kMostSources);
    }
    weights_.push_back(std::move(weight));
  }
  return result;
}

ordered_json ReportCommands::command_json(size_t number) {
  const One& one = all_[number];
  runtime::CommandProfile untimed;
  untimed.info = one.info;
  const api::CommandReport told = api::report_command(program_, *one.command, untimed);
  ordered_json json = {
      {"name", one.info->name},   {"kind", kind_of(told)}, {"operators", one.info->operators},
      {"layer", layers_[number]}, {"flops", told.flops},   {"bytes", told.bytes}};
  if (one.depth > 0) json["depth"] = one.depth;
  if (const auto* launch = std::get_if<program::Launch>(one.command)) {
    const std::string& kernel = program_.kernels[launch->kernel.index()].name;
    json["kernel"] = launch->kernel.index();
    if (const double ns = predicted_ns_[kernel]; ns > 0) json["predicted_ns"] = ns;
  }
  json["nodes"] = ordered_json::array();
  for (const std::string& node : one.info->nodes) json["nodes"].push_back(nodes_.add(node));
  json["weights"] = weights_of(number);
  std::vector<std::string> made;
  program::for_each_view(*one.command, [&](const View& view, Use use) {
    if (use != Use::write || !view.buffer.valid()) return;
    made.push_back(program_.buffers[view.buffer.index()].name + " " +
                   tensor::to_string(view.shape, false));
  });
  json["makes"] = std::move(made);
  const ReportedTimes& times = sources_.times;
  if (number < times.commands.size()) json["ms"] = times.commands[number];
  if (number < times.launches.size() && times.launches[number] != 1)
    json["launches"] = times.launches[number];
  return json;
}

void ReportCommands::add_edges(ordered_json* json) {
  using Told = std::vector<const compiler::UnfusedEdge*>;
  std::unordered_map<std::string, Told> told;  // by both names
  const auto key = [](const std::string& from, const std::string& to) { return from + "\n" + to; };
  for (const compiler::UnfusedEdge& edge : sources_.program.report().edges)
    told[key(edge.producer, edge.consumer)].push_back(&edge);
  (*json)["edges"] = ordered_json::array();
  for (const Flow& flow : flow_.flows) {
    const std::string& value = program_.buffers[flow.buffer.index()].name;
    ordered_json edge = {{"from", flow.from},
                         {"to", flow.to},
                         {"value", value},
                         {"shape", shapes_[flow.buffer.index()]},
                         {"bytes", flow.bytes}};
    const auto found = told.find(key(all_[flow.from].info->name, all_[flow.to].info->name));
    if (found != told.end() && !found->second.empty()) {
      Told& list = found->second;
      auto at = list.begin();
      for (auto other = list.begin(); other != list.end(); ++other)
        if ((*other)->value == value) at = other;
      edge["code"] = (*at)->code;
      edge["reason"] = reasons_.add((*at)->reason);
      edge["price_ns"] = (*at)->ns;
      list.erase(at);
    }
    (*json)["edges"].push_back(std::move(edge));
  }
}

void ReportCommands::add_ports(ordered_json* json) {
  const auto shape = [](const program::Port& port) { return tensor::to_string(port.shape, false); };
  (*json)["inputs"] = ordered_json::array();
  (*json)["outputs"] = ordered_json::array();
  for (size_t i = 0; i < program::shown_inputs(program_); ++i) {
    const program::Port& port = program_.inputs[i];
    ordered_json readers = ordered_json::array();
    for (size_t c = 0; c < all_.size(); ++c)
      for (BufferId id : flow_.given[c])
        if (id == port.buffer) readers.push_back(c);
    (*json)["inputs"].push_back({{"name", port.name},
                                 {"shape", shape(port)},
                                 {"bytes", program::stored_bytes(port.shape)},
                                 {"readers", std::move(readers)}});
  }
  // Several buffers may be of one output, the last value in the port's own.
  std::vector<int64_t> makers(program_.outputs.size(), -1);
  for (size_t b = 0; b < program_.buffers.size(); ++b) {
    const Buffer& buffer = program_.buffers[b];
    if (buffer.kind == BufferKind::output && buffer.number >= 0)
      makers[static_cast<size_t>(buffer.number)] =
          std::max(makers[static_cast<size_t>(buffer.number)], flow_.last_writer[b]);
  }
  for (size_t i = 0; i < program::shown_outputs(program_); ++i) {
    const program::Port& port = program_.outputs[i];
    (*json)["outputs"].push_back({{"name", port.name},
                                  {"shape", shape(port)},
                                  {"bytes", program::stored_bytes(port.shape)},
                                  {"maker", makers[i]}});
  }
}

void ReportCommands::add_to(ordered_json* json) {
  add_layers(json);
  add_ports(json);
  const FusedText fused(sources_.program.report().fused_module);
  (*json)["commands"] = ordered_json::array();
  for (size_t i = 0; i < all_.size(); ++i) {
    ordered_json one = command_json(i);
    one["hlo"] = texts_->add(fused.of(all_[i].info->name));
    (*json)["commands"].push_back(std::move(one));
  }
  add_edges(json);
  (*json)["weights"] = std::move(weights_);
  (*json)["nodes"] = nodes_.all();
  (*json)["reasons"] = reasons_.all();
}

}  // namespace heddle::tools
