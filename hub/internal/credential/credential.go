package credential

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strings"
)

// Largest file sizes, in bytes: a token has some hundred, all authorities of a browser a quarter of
// a mebibyte.
const (
	mostOfSecret      = 64 << 10
	mostOfAuthorities = 1 << 20
)

// Secret returns the text of a file without surrounding white space. The error is the system's, or
// reports that the file is too large or empty.
func Secret(name string) (string, error) {
	text, err := read(name, mostOfSecret)
	if text = strings.TrimSpace(text); err == nil && text == "" {
		err = fmt.Errorf("read %s: the file is empty", name)
	}
	return text, err
}

// Authorities returns the PEM certificates of a file, at least one.
func Authorities(name string) (*x509.CertPool, error) {
	text, err := read(name, mostOfAuthorities)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, fmt.Errorf("read %s: no certificate in PEM", name)
	}
	return pool, nil
}

func read(name string, most int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() // opened for reading
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return "", err
	}
	if int64(len(b)) > most {
		return "", fmt.Errorf("read %s: more than %d bytes", name, most)
	}
	return string(b), nil
}
