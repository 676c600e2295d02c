// Shows, checks, exports and imports checkpoints; see docs/checkpoints.md.
//
//   pdp-checkpoint inspect run-7
//   pdp-checkpoint verify run-7/step-000500
//   pdp-checkpoint export run-7 model.safetensors
//   pdp-checkpoint import model.safetensors run-8

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <variant>

#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/interchange.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/standard_streams.hpp>

namespace {

namespace checkpoint = pdp::checkpoint;

/// Prints a line. It may hold control characters from a file.
void print(const std::string& words) {
  const std::string line = pdp::printable(words) + '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
}

std::string words_of(const checkpoint::Value& value) {
  return std::visit([](const auto& each) { return pdp::text(each); }, value);
}

/// Prints the position, the values and the tensors of a checkpoint.
int inspect(const std::string& path) {
  const checkpoint::PieceReader reader{checkpoint::find_checkpoint(path)};
  const checkpoint::Manifest& manifest = reader.manifest();
  const checkpoint::Position& at = manifest.position;
  std::uint64_t bytes = 0;
  for (const auto& file : manifest.files) bytes += file.bytes;
  print(pdp::text("checkpoint ", reader.folder().string()));
  print(pdp::text("step ", at.step, ", epoch ", at.epoch, ", batch ", at.batch, ", seed ", at.seed, ", global batch ", at.global_batch));
  print(pdp::text(manifest.files.size(), " files of ", manifest.ranks, " ranks, ", bytes, " bytes, ", manifest.pieces.size(), " pieces"));
  for (const auto& [name, value] : manifest.values) print(pdp::text("value ", name, " = ", words_of(value)));
  for (const auto& tensor : manifest.tensors)
    print(pdp::text("tensor ", tensor.words(), ' ', tensor.type, ' ', checkpoint::shape_text(tensor.shape())));
  return 0;
}

/// Prints a line for each damage. Returns 1 if there is one.
int verify(const std::string& path) {
  const checkpoint::PieceReader reader{checkpoint::find_checkpoint(path)};
  int damages = 0;
  reader.verify([&](const std::string& message) {
    ++damages;
    print(message);
  });
  if (damages == 0) print(pdp::text(reader.folder().string(), ": all ", reader.manifest().pieces.size(), " pieces are intact"));
  return damages == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  pdp::open_standard_streams();
  CLI::App app{"Shows, checks, exports and imports checkpoints of pdp", "pdp-checkpoint"};
  app.require_subcommand(1);
  std::string from, to;
  const auto command = [&](const char* name, const char* text, const char* first, const char* second) {
    CLI::App* made = app.add_subcommand(name, text);
    made->add_option(first, from, "a checkpoint, or a folder of checkpoints, whose newest one is taken")->required();
    if (second != nullptr) made->add_option(second, to)->required();
    return made;
  };
  const CLI::App* inspects = command("inspect", "print the position and the tensors of a checkpoint", "path", nullptr);
  const CLI::App* verifies = command("verify", "check all hashes; exits with 1 if anything is damaged", "path", nullptr);
  const CLI::App* exports = command("export", "write a checkpoint as one safetensors file with PyTorch's names", "path", "file");
  CLI::App* imports = app.add_subcommand("import", "make a checkpoint of such a file, in a folder of checkpoints");
  imports->add_option("file", from)->required();
  imports->add_option("folder", to)->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    int code = 0;
    if (inspects->parsed()) code = inspect(from);
    if (verifies->parsed()) code = verify(from);
    if (exports->parsed()) checkpoint::export_checkpoint(from, to);
    if (imports->parsed()) print(pdp::text(checkpoint::import_checkpoint(from, to).string()));
    pdp::check_standard_output();
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pdp-checkpoint: %s\n", error.what());
    return 1;
  }
}
