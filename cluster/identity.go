package cluster

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// identity is how a replica proves to the others that it is one, and which: a certificate for its
// id. Each replica makes its own at its start, and keeps the key of it in memory. The certificate
// is signed by an authority whose key all replicas derive from the key of the cluster, so that
// nobody else can make one. It is good for ever, because replicas compare no clocks.
type identity struct {
	certificate tls.Certificate
	authority   *x509.CertPool
}

// newIdentity makes the identity of a replica. The authority differs from those of other clusters
// that have the same key.
func newIdentity(key []byte, cluster, id string) (*identity, error) {
	seed, err := hkdf.Key(sha256.New, key, nil, "certificates of cluster "+cluster, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive the authority of the cluster: %w", err)
	}
	authorityKey := ed25519.NewKeyFromSeed(seed)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster " + cluster},
		NotBefore: time.Unix(0, 0), NotAfter: endOfTime(),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, fmt.Errorf("make the authority of the cluster: %w", err)
	}
	authority, err = x509.ParseCertificate(signed)
	if err != nil {
		return nil, fmt.Errorf("make the authority of the cluster: %w", err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the replica: %w", err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "replica " + id}, DNSNames: []string{id},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err = x509.CreateCertificate(rand.Reader, leaf, authority, public, authorityKey)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the replica: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	return &identity{tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: private}, pool}, nil
}

// endOfTime is what RFC 5280, 4.1.2.5, has for a certificate that does not expire.
func endOfTime() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

// server returns the configuration that lets replicas of the cluster in, and nobody else.
func (i *identity) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{i.certificate},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: i.authority, SessionTicketsDisabled: true,
	}
}

// client returns the configuration that speaks to one replica of the cluster, and nobody else.
func (i *identity) client(replica string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{i.certificate},
		RootCAs: i.authority, ServerName: replica,
	}
}
