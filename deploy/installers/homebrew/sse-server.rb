# Made by deploy/installers of https://github.com/mcp-sse/mcp-sse for each release.
class SseServer < Formula
  desc "MCP gateway over HTTP+SSE, Streamable HTTP and stdio"
  homepage "https://github.com/mcp-sse/mcp-sse"
  version "{{.Version}}"
  license "Apache-2.0"
{{range .Systems}}
  on_{{.Name}} do
{{- range .Archives}}
    on_{{.Processor}} do
      url "{{.URL}}"
      sha256 "{{.Checksum}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "sse-server"
    man1.install Dir["man/*"]
    bash_completion.install "completions/mcp-sse.bash" => "sse-server"
    zsh_completion.install "completions/_mcp-sse" => "_sse-server"
    fish_completion.install "completions/mcp-sse.fish" => "sse-server.fish"
  end

  test do
    assert_match "sse-server", shell_output("#{bin}/sse-server --version")
    assert_match "configuration ok", shell_output("#{bin}/sse-server check")
  end
end
