// heddle cache: what the cache of compiled code holds.
#include "cache/object_cache.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command_line.h"
#include "commands.h"
#include "report.h"
#include "suggest.h"

namespace heddle::tools {
namespace {

class Cache : public Command {
 public:
  std::string_view name() const override { return "cache"; }
  std::string_view summary() const override { return "shows or clears the cache of compiled code"; }

  void declare(CommandLine& line) override {
    line.argument(action_, "ACTION", "show (the default) or clear", false);
    line.group("Cache");
    line.text(directory_, "--cache", "DIR",
              "the cache folder (default: HEDDLE_CACHE, else ~/.cache/heddle)");
    json_.declare(line);
    line.examples("  heddle cache\n  heddle cache clear\n");
  }

  Result<int> run() override {
    if (action_ != "show" && action_ != "clear")
      return user_error("cache {}: unknown; wanted show or clear{}", action_,
                        did_you_mean(action_, {"show", "clear"}));
    const std::string directory = cache::chosen_directory(directory_);
    if (directory.empty()) return user_error("cache: it is off; name a folder with --cache DIR");
    HEDDLE_ASSIGN_OR_RETURN(cache::ObjectCache cache, cache::ObjectCache::open(directory));
    const int64_t removed = cache.stats().entries;
    if (action_ == "clear") HEDDLE_RETURN_IF_ERROR(cache.clear());
    const cache::ObjectCacheStats stats = cache.stats();
    if (!json_.only_json()) {
      fmt::print("{}: {} entries, {} of {}\n", cache.directory(), stats.entries,
                 bytes_text(stats.bytes), bytes_text(stats.max_bytes));
      if (stats.weight_entries > 0)
        fmt::print("of these {} of prepared weights, {}\n", stats.weight_entries,
                   bytes_text(stats.weight_bytes));
      if (action_ == "clear") fmt::print("removed {} entries\n", removed - stats.entries);
    }
    nlohmann::ordered_json json;
    json["schema"] = 1;
    json["directory"] = cache.directory();
    json["entries"] = stats.entries;
    json["bytes"] = stats.bytes;
    json["max_bytes"] = stats.max_bytes;
    json["weight_entries"] = stats.weight_entries;
    json["weight_bytes"] = stats.weight_bytes;
    if (action_ == "clear") json["removed"] = removed - stats.entries;
    HEDDLE_RETURN_IF_ERROR(json_.write(json));
    return 0;
  }

 private:
  std::string action_ = "show", directory_;
  JsonChoice json_;
};

}  // namespace

std::unique_ptr<Command> make_cache() { return std::make_unique<Cache>(); }

}  // namespace heddle::tools
