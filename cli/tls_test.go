package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTLS: with a certificate TCP speaks TLS; a client certificate's role is what
// its organisational unit says, and one of another authority is none.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := newAuthority(t), newAuthority(t)
	ours.issue(t, dir, "server", "")
	ours.issue(t, dir, "reader", "")
	ours.issue(t, dir, "controller", "mirador:control")
	theirs.issue(t, dir, "forger", "mirador:debug")
	ca := writePEM(t, dir, "ca.pem", "CERTIFICATE", ours.cert.Raw)
	s := startServe(t, os.Geteuid(), "--config", writeConfig(t, dir, ca))
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("it is served at %s", s.url)
	}
	as := func(who string, args ...string) (string, string, int) {
		return s.mirador(t, "", append([]string{
			"--gateway", s.url, "--ca", ca, "--token-file", os.DevNull,
			"--cert", filepath.Join(dir, who+".pem"), "--key", filepath.Join(dir, who+".key"),
		}, args...)...)
	}
	if out, errs, status := as("reader", "apps", "--json"); status != 0 || !strings.Contains(out, "[") {
		t.Errorf("reader: status %d\n%s%s", status, out, errs)
	}
	if _, errs, status := as("reader", "attach", "1"); status != 1 || !strings.Contains(errs, "certificate reader has the role read") {
		t.Errorf("a reader that attaches: status %d, %s", status, errs)
	}
	if _, errs, status := as("controller", "attach", "999999999"); status != 1 || strings.Contains(errs, "role") {
		t.Errorf("a controller that attaches to nothing: status %d, %s", status, errs)
	}
	if _, _, status := as("forger", "apps"); status == 0 {
		t.Error("a certificate of another authority was taken")
	}
	if status, _ := curl(t, "--cacert", ca, s.url+"/apps"); status != 401 {
		t.Errorf("without a certificate: %d", status)
	}
}

func writeConfig(t *testing.T, dir, ca string) string {
	t.Helper()
	text, err := json.Marshal(map[string]string{
		"certificate": filepath.Join(dir, "server.pem"), "key": filepath.Join(dir, "server.key"), "client_authority": ca,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, &template, &template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	return a
}

// issue writes NAME.pem and NAME.key.
func (a *authority) issue(t *testing.T, dir, name, unit string) {
	t.Helper()
	key := newKey(t)
	template := x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if unit != "" {
		template.Subject.OrganizationalUnit = []string{unit}
	}
	raw, err := x509.CreateCertificate(rand.Reader, &template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, dir, name+".pem", "CERTIFICATE", raw)
	writePEM(t, dir, name+".key", "EC PRIVATE KEY", secret)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t *testing.T, dir, name, kind string, raw []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
