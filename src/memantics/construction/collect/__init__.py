"""From a folder of images to memes that can be worked with: read, told apart, filtered."""
