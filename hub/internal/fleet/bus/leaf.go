package bus

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// Leaf returns the credentials with which the server of a site joins the bus as a leaf node, in the
// format of NATS' credentials files, and the account that they belong to. Who has them reads and
// writes every subject of the fleet, as the hub does.
func (t *Trust) Leaf(name string) (credentials []byte, account string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, "", err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, "", err
	}
	account, _ = t.accountNow()
	claims := jwt.NewUserClaims(public)
	claims.Name, claims.IssuerAccount = "leaf "+name, account
	text, err := claims.Encode(t.accountSigner)
	if err != nil {
		return nil, "", fmt.Errorf("sign credentials of leaf %.40q: %w", name, err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, "", err
	}
	credentials, err = jwt.FormatUserConfig(text, seed)
	return credentials, account, err
}
