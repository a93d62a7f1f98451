package web

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/durable"
)

// iterations of PBKDF2 with HMAC-SHA-256, as OWASP's password storage cheat sheet recommends. A
// file may have another number.
const (
	iterations    = 600_000
	maxIterations = 10_000_000
	maxPassword   = 1024 // bytes; a longer one is refused before it is hashed
)

// hash is a stored password.
type hash struct {
	iterations int
	salt, sum  []byte
}

// WritePassword writes the file that [Options.PasswordFile] names, readable by its owner alone. If
// root writes it, it belongs to the owner of the directory, because a hub under systemd runs as
// another user. A password has 8 to 1024 bytes of UTF-8.
func WritePassword(path, password string) error {
	if utf8.RuneCountInString(password) < 8 || len(password) > maxPassword || !utf8.ValidString(password) {
		return errors.New("password: write at least 8 characters and at most 1024 bytes")
	}
	h, err := newHash(password, iterations)
	if err != nil {
		return fmt.Errorf("write password %s: %w", path, err)
	}
	if err := durable.Replace(durable.ForOwner(), path, []byte(h.String()), 0o600); err != nil {
		return fmt.Errorf("write password %s: %w", path, err)
	}
	return nil
}

func newHash(password string, rounds int) (hash, error) {
	h := hash{iterations: rounds, salt: make([]byte, 16)}
	if _, err := rand.Read(h.salt); err != nil {
		return hash{}, err
	}
	var err error
	h.sum, err = pbkdf2.Key(sha256.New, password, h.salt, rounds, sha256.Size)
	return h, err
}

// String returns the one line of the file.
func (h hash) String() string {
	b := base64.RawStdEncoding
	return fmt.Sprintf("pbkdf2-sha256$%d$%s$%s\n", h.iterations, b.EncodeToString(h.salt), b.EncodeToString(h.sum))
}

func parseHash(line string) (hash, error) {
	wrong := errors.New("not a file that this program wrote; set the password again")
	parts := strings.Split(strings.TrimSuffix(line, "\n"), "$")
	if len(parts) != 4 || parts[0] != "pbkdf2-sha256" {
		return hash{}, wrong
	}
	rounds, err := strconv.Atoi(parts[1])
	if err != nil || rounds < 1 || rounds > maxIterations {
		return hash{}, wrong
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[2])
	if err != nil || len(salt) < 8 {
		return hash{}, wrong
	}
	sum, err := base64.RawStdEncoding.DecodeString(parts[3])
	if err != nil || len(sum) != sha256.Size {
		return hash{}, wrong
	}
	return hash{iterations: rounds, salt: salt, sum: sum}, nil
}

// readPassword reads the file, and refuses one that other users can read: they could guess at the
// speed of their machine.
func readPassword(path string) (hash, error) {
	st, err := os.Stat(path)
	if err != nil {
		return hash{}, fmt.Errorf("read password: %w", err)
	}
	if runtime.GOOS != "windows" && st.Mode().Perm()&0o077 != 0 {
		return hash{}, fmt.Errorf("read password %s: other users can read it (mode %04o); chmod 600 it", path,
			st.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return hash{}, fmt.Errorf("read password: %w", err)
	}
	h, err := parseHash(string(b))
	if err != nil {
		return hash{}, fmt.Errorf("read password %s: %w", path, err)
	}
	return h, nil
}

// is compares in constant time.
func (h hash) is(password string) bool {
	if len(password) > maxPassword {
		return false
	}
	sum, err := pbkdf2.Key(sha256.New, password, h.salt, h.iterations, len(h.sum))
	return err == nil && subtle.ConstantTimeCompare(sum, h.sum) == 1
}
