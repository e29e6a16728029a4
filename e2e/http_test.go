//go:build all

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// protocolClient returns a client that speaks one version of HTTP only.
func protocolClient(t *testing.T, protocols http.Protocols, roots *x509.CertPool) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: &protocols, TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestStreamWorksOverEveryHTTP(t *testing.T) {
	t.Parallel()
	var http1, h2c, http2 http.Protocols
	http1.SetHTTP1(true)
	h2c.SetUnencryptedHTTP2(true)
	http2.SetHTTP2(true)
	cert, key, roots := selfSigned(t)
	withTLS := []string{"--tls-cert", cert, "--tls-key", key}
	for _, c := range []struct {
		name      string
		protocols http.Protocols
		args      []string
		major     int
	}{
		{"HTTP1", http1, nil, 1},
		{"H2C", h2c, nil, 2},
		{"HTTP1OverTLS", http1, withTLS, 1},
		{"HTTP2OverTLS", http2, withTLS, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, append([]string{"--heartbeat-interval", "200ms"}, c.args...)...)
			s := openStreamWith(t, protocolClient(t, c.protocols, roots), g.url)
			if s.head.ProtoMajor != c.major {
				t.Errorf("protocol = %s, want HTTP/%d", s.head.Proto, c.major)
			}
			if got := s.call("1", "echo", `{"message":"m"}`); got != "m" {
				t.Errorf("echo = %q, want m", got)
			}
			s.await("heartbeat", func(e event) bool { return e.IsComment() })
		})
	}
}

// selfSigned writes a certificate for 127.0.0.1 and returns the files, and a pool
// that trusts it.
func selfSigned(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, raw []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certFile, keyFile = write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", rawKey)
	roots = x509.NewCertPool()
	raw, err := os.ReadFile(certFile)
	if err != nil || !roots.AppendCertsFromPEM(raw) {
		t.Fatalf("certificate: %v", err)
	}
	return certFile, keyFile, roots
}
