package credential

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strings"
)

// The largest files that are read, in bytes: a token is some hundred, all authorities that a
// browser knows are a quarter of a mebibyte.
const (
	mostOfSecret      = 64 << 10
	mostOfAuthorities = 1 << 20
)

// Secret gives the text of a file without the white space around it. The error keeps the system's
// words, and says that a file is too large or has nothing in it.
func Secret(name string) (string, error) {
	text, err := read(name, mostOfSecret)
	if text = strings.TrimSpace(text); err == nil && text == "" {
		err = fmt.Errorf("read %s: it is empty", name)
	}
	return text, err
}

// Authorities gives the certificates of a file in PEM, of which there must be one.
func Authorities(name string) (*x509.CertPool, error) {
	text, err := read(name, mostOfAuthorities)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, fmt.Errorf("read %s: it holds no certificate in PEM", name)
	}
	return pool, nil
}

func read(name string, most int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() // for reading
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return "", err
	}
	if int64(len(b)) > most {
		return "", fmt.Errorf("read %s: more than %d bytes", name, most)
	}
	return string(b), nil
}
