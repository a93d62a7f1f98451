//go:build !linux

package nl

func (*kernel) linkModes(string) (LinkModes, error)     { return LinkModes{}, ErrNotSupported }
func (*kernel) permanentAddress(string) (string, error) { return "", ErrNotSupported }
