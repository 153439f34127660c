# make check   what must hold before a commit: format, vet, staticcheck, tidy, builds for every target
# make test    installs what the tests need (Debian: mosquitto, python3-paho-mqtt) and runs them all
# make arm-test the rules, decoders, journal and wires as ARMv6 and arm64 programs, under an emulator (Debian: qemu-user-static)
# make disk-test  a disk that is slow, and one that the kernel has made read-only (Debian: strace)
# make bench   measures; nothing here passes or fails
# make deb     Debian packages for amd64, arm64 and armhf, into dist/
# make package-test   tries them in a virtual machine
# make vm-test a whole arm64 table in an emulated machine that loses power; make vm-test-short is a little of it
# make build   the program for this machine, into dist/

GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
VERSION     ?= devel
LDFLAGS     := -s -w -X main.version=$(VERSION)
BUILD       := CGO_ENABLED=0 GOOS=linux $(GO) build -trimpath -ldflags '$(LDFLAGS)'

.PHONY: check format vet lint tidy builds unit deb package-test vm-test vm-test-short test arm-test disk-test deps race fuzz bench build clean

check: format vet lint tidy builds unit

format:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (run gofmt -w): $$files"; exit 1; fi

vet:
	$(GO) vet ./...
	$(GO) vet -tags vm ./bench/vm
	CGO_ENABLED=0 GOOS=linux GOARCH=arm GOARM=6 $(GO) vet ./...

lint:
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags vm ./bench/vm

tidy:
	$(GO) mod tidy -diff

builds: dist
	GOARCH=amd64 $(BUILD) -o dist/shoed-linux-amd64 ./cmd/shoed
	GOARCH=arm64 $(BUILD) -o dist/shoed-linux-arm64 ./cmd/shoed
	GOARCH=arm GOARM=6 $(BUILD) -o dist/shoed-linux-armv6 ./cmd/shoed

build: dist
	$(BUILD) -o dist/shoed ./cmd/shoed

# VERSION=1.2.3 make deb
deb: builds
	sh systemd/deb $(VERSION)

# installs, upgrades in mid-round, removes and purges the package in a virtual machine
package-test:
	sh systemd/test/run

# make vm-test VMFLAGS="-seed 7 -cuts 20"
VMTEST := $(GO) test -tags vm -v -count 1 -timeout 2h ./bench/vm
vm-test:
	@sh .ci/deps vm
	sh bench/vm/build
	$(VMTEST) $(VMFLAGS)
vm-test-short:
	@sh .ci/deps vm
	sh bench/vm/build
	$(VMTEST) -short -run TestTable $(VMFLAGS)

unit: deps dist
	systemd-analyze security --offline=true --threshold=25 --no-pager systemd/shoed.service >dist/exposure || { cat dist/exposure; exit 1; }

dist:
	mkdir -p dist

test: deps
	$(GO) test -timeout 10m ./...

deps:
	@sh .ci/deps

disk-test:
	@sh .ci/deps strace
	$(GO) test -count 1 -run 'SlowDisk|ReadOnlyDisk' ./cmd/shoed -traced

# Not emulated: the tests of journal that start processes or need a namespace of their own.
EMULATED := -skip 'Kill|DiskFull|WriteFails|SyncFails' ./round ./scanner ./journal
arm-test:
	@sh .ci/deps arm
	CGO_ENABLED=0 GOOS=linux GOARCH=arm GOARM=6 $(GO) test -short -timeout 10m -exec qemu-arm-static $(EMULATED)
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) test -short -timeout 10m -exec qemu-aarch64-static $(EMULATED)
	CGO_ENABLED=0 GOOS=linux GOARCH=arm GOARM=6 $(GO) test -short -timeout 10m -exec qemu-arm-static -run 'Wire|Lamp|Pin|Chip|Chatter' ./device

race: deps
	$(GO) test -race -timeout 20m ./...

# FUZZTIME=10m make fuzz
FUZZTIME ?= 30s
fuzz:
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		$(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; done; done

bench: deps
	sh bench/run

clean:
	rm -rf dist
