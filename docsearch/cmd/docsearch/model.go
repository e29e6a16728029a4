package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/schollz/progressbar/v3"

	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
	"github.com/mcp-sse/mcp-sse/docsearch/embed"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/printable"
	"github.com/mcp-sse/mcp-sse/docsearch/models"
)

const maxKeyBytes = 64 << 10

// endpoint returns the API that makes embeddings, nil if none is configured.
func (c *common) endpoint(p *program) (*embed.Client, error) {
	if c.Model != "" && !models.IsName(c.Model) {
		path, err := absolute(c.Model)
		if err != nil {
			return nil, err
		}
		c.Model = path // the daemon has another working directory
	}
	if c.EmbeddingsURL == "" && c.EmbeddingsModel == "" {
		return nil, nil
	}
	if c.EmbeddingsURL == "" || c.EmbeddingsModel == "" {
		return nil, usage{errors.New("--embeddings-url and --embeddings-model must be given together")}
	}
	if c.Model != "" {
		return nil, usage{errors.New("--model and --embeddings-url exclude each other")}
	}
	key, err := c.embeddingsKey(p)
	if err != nil {
		return nil, usage{err}
	}
	e, err := embed.New(embed.Options{URL: c.EmbeddingsURL, Model: c.EmbeddingsModel, Key: key})
	if err != nil {
		return nil, usage{err}
	}
	return e, nil
}

// embeddingsKey returns the key of the API, from a file if one is named.
func (c *common) embeddingsKey(p *program) (string, error) {
	if c.EmbeddingsKey == "" {
		return p.getenv("DOCSEARCH_EMBEDDINGS_KEY"), nil
	}
	path, err := filepath.Abs(c.EmbeddingsKey)
	if err != nil {
		return "", err
	}
	c.EmbeddingsKey = path // the daemon has another working directory
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("--embeddings-key-file: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyBytes {
		return "", fmt.Errorf("--embeddings-key-file %s: no file with a key", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--embeddings-key-file: %w", err)
	}
	key := strings.TrimSpace(string(data))
	if key == "" {
		return "", fmt.Errorf("--embeddings-key-file %s: the file is empty", path)
	}
	return key, nil
}

// wantedModel returns the model that the command line asks for, "" if it asks for none.
func (c *common) wantedModel() string {
	switch {
	case c.EmbeddingsModel != "":
		return c.EmbeddingsModel
	case c.Model == models.None:
		return ""
	case c.Model != "":
		return filepath.Base(c.Model)
	}
	return ""
}

// embedder returns the source of vectors: the API, or a model of the state directory. If the
// model cannot be read, it returns nil and why: searches are by words alone then.
func (c *common) embedder(stateDir string, endpoint *embed.Client) (_ index.Embedder, fault string) {
	if endpoint != nil {
		return endpoint, ""
	}
	model, err := models.Open(stateDir, c.Model)
	if err != nil {
		return nil, err.Error()
	}
	if model == nil {
		return nil, "" // none was asked for
	}
	return model, ""
}

// former returns a function that returns the model, as far as the state directory has it, that
// made the vectors of an index.
func (p *program) former(stateDir string) func(string) index.Embedder {
	return func(name string) index.Embedder {
		model := models.Made(stateDir, name)
		if model == nil {
			return nil
		}
		p.makeRoom(model)
		return model
	}
}

// modelCommand are the commands for the models of a state directory.
type modelCommand struct {
	List    listModels   `cmd:"" help:"List the models that there are, and those that can be installed."`
	Install installModel `cmd:"" help:"Download a model, and go on where a download was interrupted. Nothing else downloads one."`
	Use     useModel     `cmd:"" help:"Use a model from now on. What is indexed is embedded anew in the background; until then the model before answers, if it is in the program or installed."`
	Remove  removeModel  `cmd:"" help:"Remove an installed model."`
}

// stateFlag is the flag of the commands that use no daemon.
type stateFlag struct {
	StateDir string `help:"The state directory, where models are installed." env:"DOCSEARCH_STATE_DIR" placeholder:"DIR"`
}

func (f stateFlag) dir(p *program) (string, error) {
	return (&common{StateDir: f.StateDir}).stateDir(p)
}

type listModels struct {
	stateFlag `embed:""`
}

// Run lists models.
func (c *listModels) Run(p *program) error {
	dir, err := c.dir(p)
	if err != nil {
		return err
	}
	list, err := models.List(dir)
	if err != nil {
		return err
	}
	for _, m := range list {
		used := ""
		if m.InUse {
			used = "in use"
		}
		line := fmt.Sprintf("%-26s  %-14s  %-6s  %s", printable.Text(m.Name), m.State, used, m.About)
		fmt.Fprintln(p.stdout, strings.TrimRight(line, " "))
	}
	return nil
}

type installModel struct {
	stateFlag `embed:""`
	Name      string `arg:"" help:"A model that docsearch model list names."`
	Source    string `help:"Where to download from: https, or http of this machine. The paths below it are those of Hugging Face." default:"${models}" env:"DOCSEARCH_MODELS_URL" placeholder:"URL"`
}

// Run downloads a model.
func (c *installModel) Run(ctx context.Context, p *program) error {
	dir, err := c.dir(p)
	if err != nil {
		return err
	}
	var bar *progressbar.ProgressBar
	shown := ""
	installer := models.Installer{StateDir: dir, Source: c.Source, Progress: func(file string, done, all int64) {
		if file != shown {
			bar = progressbar.NewOptions64(all, progressbar.OptionSetWriter(p.stderr),
				progressbar.OptionSetVisibility(isTerminal(p.stderr)), progressbar.OptionSetDescription(file),
				progressbar.OptionShowBytes(true), progressbar.OptionSetPredictTime(true),
				progressbar.OptionClearOnFinish())
			shown = file
		}
		_ = bar.Set64(done) // a terminal that is gone needs no bar
	}}
	done, err := installer.Install(ctx, c.Name)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "Installed %s.\n", done.Model)
	for _, file := range models.Files() {
		fmt.Fprintf(p.stdout, "  sha256 %s  %s\n", done.SHA256[file], file)
	}
	if done.IsCommit {
		fmt.Fprintf(p.stdout, "  commit %s\n", done.Revision)
	} else {
		fmt.Fprintf(p.stdout, "The server has named no commit: the files are those of %s now.\n", done.Revision)
	}
	if !done.Compared {
		fmt.Fprintln(p.stdout, "No checksum of it was known: these are recorded, and the next download must have them.")
	}
	fmt.Fprintf(p.stdout, "docsearch model use %s makes searches use it.\n", c.Name)
	return nil
}

type useModel struct {
	stateFlag `embed:""`
	Name      string `arg:"" help:"A model that docsearch model list names, or none."`
}

// Run chooses a model, and ends the daemon, which has another one.
func (c *useModel) Run(ctx context.Context, p *program) error {
	dir, err := c.dir(p)
	if err != nil {
		return err
	}
	if err := models.Use(dir, c.Name); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "Searches use %s from now on.\n", printable.Text(c.Name))
	return endDaemon(ctx, p, dir)
}

// endDaemon ends the daemon of a state directory, if one runs: the next call starts another,
// which has the model that is chosen now.
func endDaemon(ctx context.Context, p *program, dir string) error {
	if held, err := discovery.Held(dir); err != nil || !held {
		return err
	}
	return (&stopCommand{StateDir: dir}).Run(ctx, p)
}

type removeModel struct {
	stateFlag `embed:""`
	Name      string `arg:"" help:"An installed model."`
}

// Run removes a model.
func (c *removeModel) Run(ctx context.Context, p *program) error {
	dir, err := c.dir(p)
	if err != nil {
		return err
	}
	used, err := models.Remove(dir, c.Name)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s is removed.\n", printable.Text(c.Name))
	if !used {
		return nil
	}
	fmt.Fprintf(p.stdout, "Searches use %s from now on.\n", models.Builtin)
	return endDaemon(ctx, p, dir)
}
