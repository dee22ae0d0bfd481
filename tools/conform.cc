// heddle conform: a scoreboard over a folder of test files. Every file is worked on in a process of
// its own, so that one that crashes or hangs is a line of the board.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "command_line.h"
#include "commands.h"
#include "conform_module.h"
#include "hlo/text.h"
#include "import/mapped_file.h"
#include "model_options.h"
#include "report.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Line {
  std::string file, module, outcome, reason;
};

// What must not be. What is refused with a reason is listed: test suites have wrong files too.
bool fails(const std::string& outcome) {
  static const std::set<std::string> kFailures = {"mismatch", "round trip", "crash", "timeout"};
  return kFailures.contains(outcome);
}

void write_record(int file, const ordered_json& record) {
  const std::string text =
      record.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(file, text.data() + at, text.size() - at);
    if (wrote <= 0) ::_exit(3);
    at += static_cast<size_t>(wrote);
  }
}

// In the child: a record before and after each module from `first` on.
void work_on(const std::string& path, size_t first, const ConformChoices& choices, int to) {
  Result<std::vector<std::unique_ptr<hlo::Module>>> modules;
  {
    auto file = import::MappedFile::open(path);
    if (!file)
      return write_record(to, {{"outcome", "unparsable"}, {"reason", file.error().message}});
    modules = hlo::parse_modules((*file)->bytes());
  }
  if (!modules)
    return write_record(to, {{"outcome", "unparsable"}, {"reason", modules.error().message}});
  if (modules->empty()) return write_record(to, {{"outcome", "no module"}, {"reason", ""}});
  for (size_t i = first; i < modules->size(); ++i) {
    const std::string name = (*modules)[i]->name();
    write_record(to, {{"begin", i}, {"module", name}});
    const ModuleOutcome outcome = conform_module(std::move((*modules)[i]), choices);
    write_record(to, {{"module", name}, {"outcome", outcome.outcome}, {"reason", outcome.reason}});
  }
}

struct ChildResult {
  std::string records, messages;
  int status = 0;
  bool timed_out = false;
};

std::string read_all(int file) {
  std::string text;
  char part[4096];
  ::lseek(file, 0, SEEK_SET);
  for (ssize_t got; (got = ::read(file, part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(got));
  return text;
}

Result<ChildResult> run_child(const std::string& path, size_t first, const ConformChoices& choices,
                              double limit_seconds, int64_t limit_bytes) {
  int ends[2];
  const int messages = ::memfd_create("messages", MFD_CLOEXEC);
  if (messages < 0 || ::pipe2(ends, O_CLOEXEC) != 0) return machine_error("conform: no pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return machine_error("conform: cannot start a process");
  if (child == 0) {
    ::close(ends[0]);
    ::dup2(messages, 2);
    const rlimit memory{static_cast<rlim_t>(limit_bytes), static_cast<rlim_t>(limit_bytes)};
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_AS, &memory);
    ::setrlimit(RLIMIT_CORE, &no_core);
    try {
      work_on(path, first, choices, ends[1]);
    } catch (const std::bad_alloc&) {
      write_record(ends[1], {{"outcome", "refused"}, {"reason", "out of memory"}});
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  ChildResult result;
  const Clock::time_point begin = Clock::now();
  while (true) {
    const double left = limit_seconds - std::chrono::duration<double>(Clock::now() - begin).count();
    pollfd wait{ends[0], POLLIN, 0};
    const int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(left * 1000) + 1) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      result.timed_out = true;
      ::kill(child, SIGKILL);
      break;
    }
    char part[4096];
    const ssize_t got = ::read(ends[0], part, sizeof part);
    if (got <= 0) break;
    result.records.append(part, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  ::waitpid(child, &result.status, 0);
  result.messages = read_all(messages);
  ::close(messages);
  return result;
}

// What a crash said last.
std::string last_line(const std::string& text) {
  std::string last;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.size(), text.find('\n', at));
    if (end > at) last = text.substr(at, end - at);
    at = end + 1;
  }
  return last;
}

// A reason without what is the module's own, so that equal ones are counted together.
std::string kind_of_reason(const Line& line) {
  std::string reason = line.reason;
  if (reason.starts_with(line.module + ": ")) reason = reason.substr(line.module.size() + 2);
  const size_t bracket = reason.find(" (");
  if (bracket != std::string::npos) reason.resize(bracket);
  constexpr size_t kLongest = 100;
  if (reason.size() > kLongest) reason = reason.substr(0, kLongest) + "...";
  return reason;
}

class Conform : public Command {
 public:
  std::string_view name() const override { return "conform"; }
  std::string_view summary() const override { return "scoreboard over a folder of test files"; }

  void declare(CommandLine& line) override {
    line.argument(suite_, "SUITE", "hlo: HLO text files, compared with the reference interpreter");
    line.argument(folder_, "DIR", "the folder, searched with all inside it");
    line.group("Work");
    line.number(seed_, "--seed", "N", "of the random inputs (0)");
    line.real(timeout_, "--timeout", "SECONDS", "for one file (60)");
    line.real(max_work_, "--max-work", "N", "scalar operations of one module (1e9)");
    line.flag(verbose_, "--verbose", "a line a module, as it is done");
    compile_.declare(line);
    json_.declare(line);
    line.examples("  heddle conform hlo corpora/xla-hlo --json board.json\n");
  }

  Result<int> run() override {
    if (suite_ == "onnx" || suite_ == "stablehlo")
      return user_error("conform {}: not built yet; there is hlo", suite_);
    if (suite_ != "hlo") return user_error("conform {}: unknown; there is hlo", suite_);
    HEDDLE_ASSIGN_OR_RETURN(const ConformChoices choices, make_choices());
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> files, find_files());
    const bool terminal = ::isatty(2) == 1;
    for (size_t i = 0; i < files.size(); ++i) {
      if (terminal) fmt::print(stderr, "\r\x1b[K{}/{} {}", i + 1, files.size(), files[i]);
      HEDDLE_RETURN_IF_ERROR(work_through(files[i], choices));
    }
    if (terminal) fmt::print(stderr, "\r\x1b[K");
    const bool pass = std::none_of(lines_.begin(), lines_.end(),
                                   [](const Line& line) { return fails(line.outcome); });
    if (!json_.only_json()) print(files.size(), pass);
    HEDDLE_RETURN_IF_ERROR(json_.write(json(files.size(), pass)));
    return pass ? 0 : 1;
  }

 private:
  Result<ConformChoices> make_choices() const {
    ConformChoices choices;
    HEDDLE_ASSIGN_OR_RETURN(const heddle_compile_options options, compile_.options());
    api::CompileOptions& to = choices.compile;
    to.device = compile_.device;
    to.target = compile_.target;
    to.level = compile_.level;
    to.fuse = compile_.fuse;
    to.memory = compile_.memory;
    to.numerics = compile_.numerics;
    to.precision = compile_.precision;
    to.library = compile_.library;
    to.cache = compile_.cache;
    to.threads = options.threads;
    if (!compile_.dump.empty() || !compile_.stop_after.empty())
      return user_error("conform: --dump and --stop-after are for one model; see heddle compile");
    choices.seed = static_cast<uint64_t>(seed_.value_or(0));
    choices.max_work = max_work_.value_or(choices.max_work);
    return choices;
  }

  Result<std::vector<std::string>> find_files() const {
    std::error_code error;
    std::vector<std::string> files;
    fs::recursive_directory_iterator at(folder_, fs::directory_options::skip_permission_denied,
                                        error);
    if (error) return user_error("{}: cannot be searched: {}", folder_, error.message());
    for (const fs::directory_entry& entry : at)
      if (entry.is_regular_file(error) && entry.path().extension() == ".hlo")
        files.push_back(entry.path().string());
    if (files.empty()) return user_error("{}: no .hlo file inside", folder_);
    std::sort(files.begin(), files.end());
    return files;
  }

  void add(Line line) {
    if (verbose_)
      fmt::print(stderr, "{} {}: {}{}{}\n", line.file, line.module, line.outcome,
                 line.reason.empty() ? "" : ": ", line.reason);
    lines_.push_back(std::move(line));
  }

  Status work_through(const std::string& path, const ConformChoices& choices) {
    constexpr double kTimeout = 60;
    constexpr int64_t kMemoryBytes = int64_t{16} << 30;
    const std::string shown = fs::path(path).lexically_relative(folder_).string();
    for (size_t first = 0;;) {
      HEDDLE_ASSIGN_OR_RETURN(
          const ChildResult child,
          run_child(path, first, choices, timeout_.value_or(kTimeout), kMemoryBytes));
      std::optional<size_t> open;  // begun and not ended
      std::string open_name;
      for (size_t at = 0; at < child.records.size();) {
        const size_t end = std::min(child.records.size(), child.records.find('\n', at));
        const ordered_json record =
            ordered_json::parse(child.records.substr(at, end - at), nullptr, false);
        at = end + 1;
        if (record.is_discarded()) continue;
        if (record.contains("begin")) {
          open = record["begin"].get<size_t>();
          open_name = record["module"];
          continue;
        }
        open.reset();
        add({shown, record.value("module", ""), record.value("outcome", ""),
             record.value("reason", "")});
      }
      const bool crashed = WIFSIGNALED(child.status) || WEXITSTATUS(child.status) != 0;
      if (!crashed) return {};
      const std::string why = child.timed_out
                                  ? fmt::format("{} s were not enough", timeout_.value_or(kTimeout))
                                  : last_line(child.messages);
      add({shown, open_name, child.timed_out ? "timeout" : "crash", why});
      if (!open) return {};
      first = *open + 1;  // go on behind it
    }
  }

  int64_t files_with(bool (*wanted)(const std::string&), bool all) const {
    std::map<std::string, std::pair<int64_t, int64_t>> counts;  // wanted, all
    for (const Line& line : lines_) {
      counts[line.file].first += wanted(line.outcome);
      ++counts[line.file].second;
    }
    return std::count_if(counts.begin(), counts.end(), [&](const auto& entry) {
      const auto& [yes, total] = entry.second;
      return all ? yes == total : yes > 0;
    });
  }

  std::map<std::string, int64_t> count_outcomes() const {
    std::map<std::string, int64_t> counts;
    for (const Line& line : lines_) ++counts[line.outcome];
    return counts;
  }

  void print(size_t files, bool pass) const {
    const auto is_equal = [](const std::string& outcome) { return outcome == "equal"; };
    fmt::print("files: {}, all modules equal in {}, some in {}\n", files,
               files_with(is_equal, true), files_with(is_equal, false));
    for (const auto& [outcome, count] : count_outcomes()) {
      fmt::print("{:>6} {}\n", count, outcome);
      if (outcome == "equal") continue;
      std::map<std::string, std::vector<const Line*>> reasons;
      for (const Line& line : lines_)
        if (line.outcome == outcome) reasons[kind_of_reason(line)].push_back(&line);
      for (const auto& [reason, lines] : reasons)
        fmt::print("       {:>6} {}  [{} {}]\n", lines.size(), reason, lines[0]->file,
                   lines[0]->module);
    }
    fmt::print("{}\n", pass ? "PASS" : "FAIL");
  }

  ordered_json json(size_t files, bool pass) const {
    const auto is_equal = [](const std::string& outcome) { return outcome == "equal"; };
    ordered_json json;
    json["schema"] = 1;
    json["suite"] = suite_;
    json["folder"] = folder_;
    json["files"] = files;
    json["files_equal"] = files_with(is_equal, true);
    json["modules"] = lines_.size();
    json["pass"] = pass;
    json["outcomes"] = count_outcomes();
    json["lines"] = ordered_json::array();
    for (const Line& line : lines_)
      json["lines"].push_back({{"file", line.file},
                               {"module", line.module},
                               {"outcome", line.outcome},
                               {"reason", line.reason}});
    return json;
  }

  std::string suite_, folder_;
  CompileChoices compile_;
  JsonChoice json_;
  std::optional<int64_t> seed_;
  std::optional<double> timeout_, max_work_;
  bool verbose_ = false;
  std::vector<Line> lines_;
};

}  // namespace

std::unique_ptr<Command> make_conform() { return std::make_unique<Conform>(); }

}  // namespace heddle::tools
