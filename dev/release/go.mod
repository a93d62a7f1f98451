module github.com/linerate/linerate/dev/release

go 1.26.7

require (
	aead.dev/minisign v0.3.0
	github.com/goreleaser/nfpm/v2 v2.48.0
)
