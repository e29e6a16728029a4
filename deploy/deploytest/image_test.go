//go:build deploy

package deploytest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The image that .ko.yaml describes has the program, which needs no other file.
func TestContainerImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tarball, root := filepath.Join(dir, "image.tar"), filepath.Join(dir, "root")
	goTool(t, []string{"KO_DEFAULTBASEIMAGE=" + emptyImage(t), "KO_DOCKER_REPO=example.com/sse-server"},
		ko, "build", "--push=false", "--tarball", tarball, "--platform", "linux/"+runtime.GOARCH, "--bare", "./cmd/sse-server")

	run(t, "tar", "-xf", tarball, "-C", dir)
	var images []struct {
		Config string
		Layers []string
	}
	decode(t, filepath.Join(dir, "manifest.json"), &images)
	var image struct {
		Config struct{ Entrypoint []string }
	}
	decode(t, filepath.Join(dir, images[0].Config), &image)
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, layer := range images[0].Layers {
		run(t, "tar", "-xf", filepath.Join(dir, layer), "-C", root)
	}
	printed := run(t, append(append([]string{installed(t, "chroot"), root}, image.Config.Entrypoint...), "--version")...)
	if !strings.HasPrefix(printed, "sse-server ") || !strings.Contains(printed, "linux/"+runtime.GOARCH) {
		t.Errorf("--version: %s", printed)
	}
}

// decode reads a file of JSON.
func decode(t *testing.T, name string, to any) {
	t.Helper()
	if data := readAll(t, name); json.Unmarshal([]byte(data), to) != nil {
		t.Fatalf("%s is no JSON for this: %s", name, data)
	}
}

// emptyImage serves an image without files, in place of the base that only a registry has,
// and returns its reference.
func emptyImage(t *testing.T) string {
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":[]}}`, runtime.GOARCH)
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(config)))
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[],
		"config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":%d,"digest":%q}}`, len(config), digest)
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v2/":
		case "/v2/empty/blobs/" + digest:
			fmt.Fprint(w, config)
		default:
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			fmt.Fprint(w, manifest)
		}
	}))
	t.Cleanup(registry.Close)
	return strings.TrimPrefix(registry.URL, "http://") + "/empty:latest"
}
